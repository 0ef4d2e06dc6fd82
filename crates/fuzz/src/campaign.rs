//! Campaigns of many generated scenarios (cases). A campaign runs its cases, counts the pairs of
//! setting values that they cover, and collects the cases that violate an oracle (a rule for every
//! run).

use crate::features::{Features, Level, Pairs, THREAD_COUNTS, THREADS};
use crate::generate::{Case, Generator, Refusal, Wish, last_read, text};
use crate::oracles::{Failure, Reported, Verdict, guarded, judge_with};
use crate::shrink::shrink;
use crate::sources::Files;
use eastwest_engine::random::Stream;
use eastwest_settings::row::KeyDoc;
use eastwest_sim::plan::Plan;
use eastwest_sim::scenario::Context;
use eastwest_sim::threads::obstacle;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use toml::Table;

/// Number of refusals by the reader of scenarios after which a pair of setting values counts as
/// impossible, if the pair was never accepted.
pub const REFUSED_AFTER: u32 = 12;

/// Number of failures after which a campaign begins no more cases, because the reduction of each
/// failing scenario takes a while.
const MOST_FAILED: u64 = 20;

/// Number of further rare levels (values of settings) that a case should have in addition to its
/// pair of levels, if possible.
const BESIDE: usize = 8;

/// Number of random levels (values of settings) from which one further level of a case is chosen.
const CANDIDATES: usize = 12;

/// Maximum number of draws of one case (generated scenario) that shall be able to run on several
/// threads.
const MOST_DRAWS: u32 = 60;

/// A generated scenario (case) that violates an oracle, and its reduced form.
#[derive(Clone, Debug)]
pub struct Found {
    /// Number of the case in its campaign.
    pub case: u64,
    /// The oracle that the reduced scenario violates, and the message.
    pub failure: Failure,
    /// The scenario as drawn, as TOML.
    pub drawn: String,
    /// The reduced scenario, as TOML.
    pub reduced: String,
    /// Content of the files that the scenario may name, by file name.
    pub files: Files,
    /// Number of threads in the parallel run of the case.
    pub threads: usize,
}

/// Coverage of a campaign: what its cases (generated scenarios) have exercised, as counts.
#[derive(Clone, Debug)]
pub struct Covered {
    /// Number of cases that were run and checked, without those that were too large.
    pub cases: u64,
    /// Number of draws for which no valid scenario with the requested setting values was found.
    pub refused: u64,
    /// Number of cases that were not checked, because their runs have too many events.
    pub too_large: u64,
    /// Number of cases whose run was saved in a checkpoint, loaded and continued.
    pub kept: u64,
    /// Number of cases (generated scenarios) whose run was partitioned among several threads until
    /// its end.
    pub in_parts: u64,
    /// Number of events, summed over the first runs (on one thread, without a stop) of all cases
    /// that violate no oracle.
    pub events: u64,
    /// Number of packets sent, summed over the first runs (on one thread, without a stop) of all
    /// cases that violate no oracle.
    pub packets: u64,
    /// How often each pair of setting values (levels) was tried, and how often no valid scenario
    /// with it was found.
    pub pairs: Pairs,
}

impl Covered {
    /// Returns zero counts for all pairs of the levels of `features`.
    pub fn new(features: &Features) -> Covered {
        Covered {
            cases: 0,
            refused: 0,
            too_large: 0,
            kept: 0,
            in_parts: 0,
            events: 0,
            packets: 0,
            pairs: Pairs::new(features.levels()),
        }
    }

    fn add(&mut self, others: &Covered) {
        self.cases += others.cases;
        self.refused += others.refused;
        self.too_large += others.too_large;
        self.kept += others.kept;
        self.in_parts += others.in_parts;
        self.events += others.events;
        self.packets += others.packets;
        self.pairs.add(&others.pairs);
    }
}

/// Probability that a case names a user's mechanism in its main setting, if several settings can
/// name it; otherwise the setting is drawn from all of them. The main setting is the one with the
/// shortest path: `fabric.queue` for a queue discipline, not the queue of a class.
const MAIN_PLACE: f64 = 0.75;

/// Kinds of fabric with several shortest paths, on which a user's routing has an effect.
const SEVERAL_PATHS: [&str; 2] = ["leaf-spine", "fat-tree"];

/// A mechanism of the user (plug-in), which the cases of a campaign have to use.
struct Own {
    /// Name by which scenarios refer to the mechanism.
    name: String,
    /// Dotted paths of the settings that can name the mechanism, such as `fabric.queue.kind`; the
    /// main setting is first.
    paths: Vec<String>,
    /// Whether the mechanism has an effect only on fabrics with several shortest paths.
    needs_paths: bool,
}

impl Own {
    /// Returns the user's mechanism with this kind (such as `routing`) and name, and the paths of
    /// the settings that can name it; `None` if there is no such setting. `rows`: documentation of
    /// all settings.
    fn of(rows: &[KeyDoc], kind: &str, name: &str) -> Option<Own> {
        let names_it = |row: &&KeyDoc| row.choices.iter().any(|choice| choice.0 == name);
        let mut paths: Vec<String> = rows.iter().filter(names_it).map(KeyDoc::path).collect();
        paths.sort_by_key(|path| (path.split('.').count(), path.contains("host_queue")));
        paths.dedup();
        let is_there = !paths.is_empty();
        is_there.then(|| Own { name: name.to_owned(), paths, needs_paths: kind == "routing" })
    }

    /// Returns the setting values that a case needs to use the user's mechanism: the setting that
    /// names it, the simulation of packets, and for a routing a fabric with several paths.
    fn wishes(&self, random: &mut Stream) -> Vec<Wish> {
        let any = random.below(self.paths.len() as u64) as usize;
        let path = &self.paths[if random.unit() < MAIN_PLACE { 0 } else { any }];
        let mut wishes = vec![Wish::firm(path, &self.name), Wish::firm("fidelity", "packet")];
        if self.needs_paths {
            let kind = SEVERAL_PATHS[random.below(SEVERAL_PATHS.len() as u64) as usize];
            wishes.push(Wish { is_firm: false, ..Wish::firm("fabric.kind", kind) });
        }
        wishes
    }
}

/// Whether the case with this number is drawn so that it can run on several threads; true for one
/// in eight.
fn is_divided(number: u64) -> bool {
    number % 8 == 7
}

/// Progress of a running campaign of generated scenarios (cases).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of cases that have ended so far.
    pub done: u64,
    /// Number of cases that violate an oracle so far.
    pub failed: u64,
    /// Number of the case that each working thread is judging.
    pub current: Vec<u64>,
}

/// A generated scenario (case), and the two setting values (levels) that were requested for it.
pub struct Drawn {
    /// Numbers of the two requested levels (values of settings), as in [`Features::number`].
    pub pair: (usize, usize),
    /// The two requested levels as text, such as `workload.*.kind = bulk`.
    pub names: [String; 2],
    /// Number of threads in the parallel run of the case.
    pub threads: usize,
    /// The case; or, if no valid scenario was found, the last problem that the reader reported.
    pub case: Result<Case, Refusal>,
}

/// Campaign: generates scenarios (cases), and judges them by the oracles.
pub struct Campaign {
    generator: Generator,
    features: Features,
    seed: u64,
    /// Pairs of levels (values of settings) that cases should have, in the order of requests.
    wanted: Vec<(usize, usize)>,
    /// Setting values that every case should have in addition to its pair.
    always: Vec<Wish>,
    /// Mechanisms of the user; each case must use one of them.
    own: Vec<Own>,
    /// Function that returns the last error which a mechanism of the user has reported.
    fault: Box<Reported>,
    /// Whether `wanted` contains only pairs of levels that were rarely tried before.
    is_focused: bool,
    /// Pairs of levels in `wanted`, as a set for fast lookup.
    is_wanted: BTreeSet<(usize, usize)>,
}

impl Campaign {
    /// Returns the campaign of a seed, whose cases request pairs of setting values (levels) in
    /// random order. If `before`, the counts of earlier campaigns, is given, only pairs that were
    /// tried less than `enough` times are requested. Without `before`, or if no pair is rare, all
    /// pairs are requested.
    pub fn new(context: Context, seed: u64, before: Option<&Pairs>, enough: u32) -> Campaign {
        let names = context.mechanisms.names();
        let generator = Generator::new(context);
        let rows = generator.rows();
        let own = names.iter().filter_map(|(kind, name)| Own::of(&rows, kind, name)).collect();
        let features = Features::of(&rows);
        let all = Pairs::new(features.levels());
        let pairs = before.unwrap_or(&all);
        let is_pair = |(a, b): &(usize, usize)| {
            features.level(*a).axis != features.level(*b).axis || {
                // two entries of a list, for example two workloads, can have both levels
                features.name(features.level(*a)).0.contains('*')
            }
        };
        let can_be = |tried, refused| tried > 0 || refused < REFUSED_AFTER;
        let rare = pairs.iter().filter(|(_, tried, refused)| {
            *tried < enough && can_be(*tried, *refused) && before.is_some()
        });
        let mut wanted: Vec<_> = rare.map(|(pair, ..)| pair).filter(is_pair).collect();
        let is_focused = !wanted.is_empty();
        if !is_focused {
            wanted = all.iter().map(|(pair, ..)| pair).filter(is_pair).collect();
        }
        Stream::new(seed, "pairs").shuffle(&mut wanted);
        let is_wanted = wanted.iter().copied().collect();
        let (always, fault): (_, Box<Reported>) = (Vec::new(), Box::new(|| None));
        Campaign { generator, features, seed, wanted, always, own, fault, is_focused, is_wanted }
    }

    /// Returns the campaign with the additional setting values `always` for each of its cases. If
    /// no valid scenario has these values and the requested pair of levels, the case is drawn
    /// without the pair.
    pub fn with(self, always: Vec<Wish>) -> Campaign {
        Campaign { always, ..self }
    }

    /// Returns the campaign with a function that returns the error which a mechanism of the user
    /// has reported since the last call. The function is called after each judged scenario.
    pub fn with_fault(self, fault: Box<Reported>) -> Campaign {
        Campaign { fault, ..self }
    }

    /// Returns the setting values that the case with this number must have: those of all cases, and
    /// those that use one of the user's mechanisms, if there are any.
    fn always(&self, number: u64, random: &mut Stream) -> Vec<Wish> {
        let mut wishes = self.always.clone();
        if let Some(own) = self.own.get((number % self.own.len().max(1) as u64) as usize) {
            for wish in own.wishes(random) {
                if self.always.iter().all(|other| other.path != wish.path) {
                    wishes.push(wish);
                }
            }
        }
        wishes
    }

    /// Returns the axes (settings with few values) whose levels (values) are combined in pairs.
    pub fn features(&self) -> &Features {
        &self.features
    }

    fn wish(&self, level: Level) -> Option<Wish> {
        let (path, level) = self.features.name(level);
        (path != THREADS).then(|| Wish::firm(path, level))
    }

    /// Returns further levels (values of settings) for a case, so that one case covers many rare
    /// pairs. Each one is chosen from some random levels: it makes most rare pairs with the levels
    /// before it. The case need not have these levels if the reader refuses them.
    fn beside(&self, pair: (usize, usize), random: &mut Stream) -> Vec<Wish> {
        let mut chosen = vec![pair.0, pair.1];
        let among = self.wanted.len() as u64;
        for _ in 0..if self.is_focused { BESIDE } else { 0 } {
            let mut drawn = || {
                let pair = self.wanted[random.below(among) as usize];
                if random.below(2) == 0 { pair.0 } else { pair.1 }
            };
            let some: Vec<usize> = (0..CANDIDATES).map(|_| drawn()).collect();
            let is_other = |level: &&usize| {
                let is_same = |other: &usize| {
                    self.features.level(*other).axis == self.features.level(**level).axis
                };
                !chosen.iter().any(is_same)
            };
            let rare = |level: usize| {
                let is_rare = |other: &&usize| {
                    self.is_wanted.contains(&(level.min(**other), level.max(**other)))
                };
                chosen.iter().filter(is_rare).count()
            };
            if let Some(best) = some.iter().filter(is_other).max_by_key(|level| rare(**level)) {
                chosen.push(*best);
            }
        }
        let wishes = chosen[2..].iter().filter_map(|level| self.wish(self.features.level(*level)));
        wishes.map(|wish| Wish { is_firm: false, ..wish }).collect()
    }

    /// Draws cases without a requested pair of levels until one can run on several threads, which
    /// few cases can. After `MOST_DRAWS` draws, returns the last case.
    fn draw_divided(&self, always: &[Wish], random: &mut Stream) -> Result<Case, Refusal> {
        let mut case = self.generator.case(random, always)?;
        for _ in 0..MOST_DRAWS {
            let plan = Plan::new(&case.scenario);
            if plan.is_ok_and(|plan| obstacle(&plan).is_none()) {
                break;
            }
            case = self.generator.case(random, always)?;
        }
        Ok(case)
    }

    /// Returns the context in which a case is read and run.
    pub fn context(&self, case: &Case) -> Context {
        self.generator.context(&case.files)
    }

    /// Draws the case with this number without a requested pair of levels, if possible one whose run
    /// can be partitioned among several threads.
    pub fn draw_partitionable(&self, number: u64) -> Result<Case, Refusal> {
        let mut random = Stream::new(self.seed, &format!("partitionable/{number}"));
        let always = self.always(number, &mut random);
        self.draw_divided(&always, &mut random)
    }

    /// Draws the case with this number, for the next requested pair of levels. One case in eight is
    /// drawn without the pair instead, so that it can run on several threads.
    pub fn draw_case(&self, number: u64) -> Drawn {
        let mut random = Stream::new(self.seed, &format!("case/{number}"));
        let pair = self.wanted[(number % self.wanted.len() as u64) as usize];
        let levels = [pair.0, pair.1].map(|number| self.features.level(number));
        let always = self.always(number, &mut random);
        let mut wishes = always.clone();
        let beside = self.beside(pair, &mut random);
        for wish in levels.iter().filter_map(|level| self.wish(*level)).chain(beside) {
            if always.iter().all(|other| other.path != wish.path) {
                wishes.push(wish);
            }
        }
        let names = levels.map(|level| self.features.name(level));
        let threads = names
            .iter()
            .filter(|(path, _)| *path == THREADS)
            .find_map(|(_, count)| count.parse().ok())
            .unwrap_or(THREAD_COUNTS[random.below(THREAD_COUNTS.len() as u64) as usize]);
        let names = names.map(|(path, level)| format!("{path} = {level}"));
        let case = match is_divided(number) {
            true => self.draw_divided(&always, &mut random),
            false => self.generator.case(&mut random, &wishes),
        };
        Drawn { pair, names, threads, case }
    }

    /// Draws the case with this number, without the requested pair if no valid scenario has it;
    /// judges it and adds it to the coverage. Returns its failure; `None` if it violates no oracle.
    pub fn one(&self, number: u64, covered: &mut Covered) -> Option<Found> {
        let drawn = guarded("check", || self.draw(number));
        let (drawn, refused) = match drawn {
            Ok(drawn) => drawn,
            Err(failure) => {
                covered.cases += 1;
                let read = last_read();
                let (drawn, reduced) = (read.clone(), read);
                let files = Files::new();
                return Some(Found { case: number, failure, drawn, reduced, files, threads: 1 });
            }
        };
        covered.refused += u64::from(refused);
        self.judge_case(number, &drawn, covered)
    }

    /// Draws the case with this number; if no valid scenario has the requested pair, draws it
    /// without the pair and returns true.
    fn draw(&self, number: u64) -> (Drawn, bool) {
        let mut drawn = self.draw_case(number);
        let refused = drawn.case.is_err();
        if refused {
            // the case is drawn again without the pair, since nearly every such draw gives a valid
            // scenario
            let mut random = Stream::new(self.seed, &format!("free case/{number}"));
            let mut wishes = self.always(number, &mut random);
            wishes.extend(self.beside(drawn.pair, &mut random));
            drawn.case = self.generator.case(&mut random, &wishes);
        }
        (drawn, refused)
    }

    /// Judges a case that was drawn, and adds it to the coverage. Returns its failure; `None` if it
    /// violates no oracle, is too large, or has no valid scenario.
    pub fn judge_case(&self, number: u64, drawn: &Drawn, covered: &mut Covered) -> Option<Found> {
        let Drawn { pair, threads, case, .. } = drawn;
        let Ok(case) = case else {
            covered.pairs.refuse(pair.0, pair.1);
            return None;
        };
        let context = self.generator.context(&case.files);
        let verdict = judge_with(case, &context, (*threads, number), &*self.fault);
        if let Verdict::Holds(looked) = &verdict {
            covered.kept += u64::from(looked.kept);
            covered.in_parts += u64::from(looked.in_parts);
            covered.events += looked.events;
            covered.packets += looked.packets;
        }
        let failure = match verdict {
            Verdict::TooLarge => {
                covered.too_large += 1;
                return None;
            }
            Verdict::Holds(_) => None,
            Verdict::Fails(failure) => Some(failure),
        };
        covered.cases += 1;
        let resolved: Table = case.scenario.resolved().parse().unwrap_or_default();
        let levels = self.features.of_scenario(&case.given, &resolved, *threads);
        let numbers: Vec<usize> = levels.iter().map(|level| self.features.number(*level)).collect();
        covered.pairs.count(&numbers);
        let has_both = numbers.contains(&pair.0) && numbers.contains(&pair.1);
        if !has_both && !is_divided(number) {
            covered.pairs.refuse(pair.0, pair.1);
        }
        failure.map(|failure| self.found(number, case, &failure, *threads))
    }

    /// Reduces a failing case to the smallest scenario that violates the same oracle.
    fn found(&self, number: u64, case: &Case, failure: &Failure, threads: usize) -> Found {
        let at = (threads, number);
        let (reduced, failure) = shrink(&self.generator, case, failure, at, &*self.fault);
        let (drawn, reduced) = (text(&case.given), text(&reduced));
        Found { case: number, failure, drawn, reduced, files: case.files.clone(), threads }
    }

    /// Draws and judges cases `first` to `first + count - 1` on `at_once` threads. `look` is called
    /// with the progress several times a second. No more cases are begun if `look` returns false,
    /// or after 20 failures. Returns the coverage, and the failures in the order of the numbers of
    /// their cases.
    pub fn run(
        &self,
        (first, count): (u64, u64),
        at_once: usize,
        look: &mut dyn FnMut(&Progress) -> bool,
    ) -> (Covered, Vec<Found>) {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        let all = Mutex::new((Covered::new(&self.features), Vec::new()));
        let current: Vec<AtomicU64> = (0..at_once.max(1)).map(|_| AtomicU64::new(first)).collect();
        let work = &|current: &AtomicU64| {
            let mut covered = Covered::new(&self.features);
            let mut found = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                current.store(first + number, Ordering::Relaxed);
                if let Some(one) = self.one(first + number, &mut covered) {
                    failed.fetch_add(1, Ordering::Relaxed);
                    found.push(one);
                }
                done.fetch_add(1, Ordering::Relaxed);
            }
            if let Ok(mut all) = all.lock() {
                all.0.add(&covered);
                all.1.extend(found);
            }
        };
        thread::scope(|scope| {
            let start = |current| scope.spawn(move || work(current));
            let workers: Vec<_> = current.iter().map(start).collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                let busy = workers.iter().zip(&current).filter(|(worker, _)| !worker.is_finished());
                let progress = Progress {
                    done: done.load(Ordering::Relaxed),
                    failed: failed.load(Ordering::Relaxed),
                    current: busy.map(|(_, case)| case.load(Ordering::Relaxed)).collect(),
                };
                if !look(&progress) || progress.failed >= MOST_FAILED {
                    stop.store(true, Ordering::Relaxed);
                }
                thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let (covered, mut found) =
            all.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        found.sort_by_key(|one: &Found| one.case);
        (covered, found)
    }

    /// Returns the number of pairs of levels that the cases of this campaign request.
    pub fn pairs(&self) -> usize {
        self.wanted.len()
    }
}
