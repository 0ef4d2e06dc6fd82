//! Tests of the log of PFC pauses: the first pause against its closed form to the picosecond, sums
//! against the counters, pauses that have not ended, and the shares of ports in the rows.

use crate::dcb::ring;
use crate::harness::{
    Outcome, attempt, context_with, finish, observed, outcome, scenario, scenario_in,
};
use eastwest_types::{Span, Time};

/// Returns (link, priority, begin, end, cause of the end) of every logged pause; times are in
/// seconds.
fn pauses(done: &Outcome) -> Vec<(u64, u64, f64, f64, String)> {
    let (links, priorities) = (done.u64s("pauses", "link"), done.u64s("pauses", "priority"));
    let [began, until] = ["began_s", "until_s"].map(|column| done.f64s("pauses", column));
    let ended = done.texts("pauses", "ended");
    (0..links.len())
        .map(|i| (links[i], priorities[i], began[i], until[i], ended[i].to_owned()))
        .collect()
}

/// Returns a scenario with a fast host behind a switch whose output link has a tenth of the host's
/// rate; `measure` are further lines.
fn thin(measure: &str) -> String {
    format!(
        "schema = 1\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nhosts_per_leaf = 1\nspines = 1\n\
         host_rate = '10 Gbit/s'\nhost_delay = '1 us'\nuplink_rate = '1 Gbit/s'\n\
         uplink_delay = '1 us'\nprocessing_jitter = '0 s'\n[fabric.pfc]\nresponse = '0 s'\n\
         xoff = '30000 B'\n[[class]]\nname = 'frames'\npriority = 3\n[[workload]]\nname = 'frames'\n\
         kind = 'ethernet'\npattern = 'pairs'\nsources = 'h0'\ndestinations = 'h1'\n\
         rate = '10 Gbit/s'\nframes = 400\nburst = 400\narrivals = 'periodic'\n{measure}"
    )
}

#[test]
fn a_first_pause_begins_and_ends_when_it_must() {
    let done = outcome(&thin("[measure]\npauses = 'h0'\n"), &[]);
    // frames of 1500 B take 1538 B on the link, back to back; a PAUSE frame takes 84 B
    let (fast, slow, told) = (1.2304, 12.304, 0.0672 + 1.0);
    let first = done.f64s("streams", "first_s")[0] * 1e6 + fast + 1.0;
    // XOFF is sent at the arrival of frame 22: the switch then holds 20 frames of 1500 B, because
    // two have left
    let began = first + 21.0 * fast + told;
    // the host has begun to send frame 24 by then; the XON threshold, 27,000 B, is reached when six
    // frames have left
    let until = first + 6.0 * slow + told;
    let all = pauses(&done);
    let (link, priority, from, to, ended) = &all[0];
    assert_eq!((*link, *priority, ended.as_str()), (0, 3, "released"));
    assert!((from * 1e6 - began).abs() < 1e-6, "{} for {began}", from * 1e6);
    assert!((to * 1e6 - until).abs() < 1e-6, "{} for {until}", to * 1e6);
}

#[test]
fn pauses_add_up_to_what_the_ports_count() {
    let all = thin("[measure]\npauses = '*'\n");
    let (plain, logged) = (outcome(&thin(""), &[]), outcome(&all, &[]));
    assert_eq!(plain.digest(), logged.digest());
    assert_eq!((plain.count("pauses.rows"), plain.u64s("pauses", "link").len()), (0, 0));
    assert_eq!(plain.table_text("pfc"), logged.table_text("pfc"));
    let rows = pauses(&logged);
    assert_eq!(
        (rows.len() as u64, 0),
        (logged.count("dcb.pauses"), logged.count("pauses.left_out"))
    );
    assert!(rows.len() > 5, "{rows:?}");
    let columns = ["link", "priority", "pauses"].map(|column| logged.u64s("pfc", column));
    for (i, paused_s) in logged.f64s("pfc", "paused_s").iter().enumerate() {
        let of: Vec<_> =
            rows.iter().filter(|r| (r.0, r.1) == (columns[0][i], columns[1][i])).collect();
        assert_eq!(of.len() as u64, columns[2][i]);
        let sum: f64 = of.iter().map(|r| r.3 - r.2).sum();
        assert!((sum - paused_s).abs() < 1e-12, "{sum} of {paused_s}");
        assert!(of.windows(2).all(|two| two[0].3 <= two[1].2), "{of:?}");
    }
    let reference = attempt(&scenario(&all, &[]), true).expect("it finishes");
    assert_eq!(reference.table_text("pauses"), logged.table_text("pauses"));
}

#[test]
fn frames_show_the_pauses_of_the_table() {
    let of = scenario(&thin("[measure]\npauses = '*'\n"), &[]);
    let plain = finish(&of);
    let step = Span::from_ps(123_457);
    let (done, frames) = observed(&of, Time::ZERO, &mut |frame| frame.progress.now + step);
    assert_eq!(done.table_text("pauses"), plain.table_text("pauses"));
    assert_eq!(done.digest(), plain.digest());
    let rows = pauses(&done);
    let ps = |seconds: f64| (seconds * 1e12).round() as u64;
    let mut paused = 0;
    for frame in &frames {
        let now = frame.progress.now.0;
        for link in 0..frame.paused.len() as u64 {
            let at =
                |r: &&(u64, u64, f64, f64, String)| r.0 == link && ps(r.2) <= now && now < ps(r.3);
            let is_paused = rows.iter().find(at).is_some();
            assert_eq!(frame.paused[link as usize] == 1, is_paused, "link {link} at {now} ps");
            paused += u64::from(is_paused);
        }
    }
    assert!(paused > 100 && paused < frames.len() as u64, "{paused} of {}", frames.len());
}

#[test]
fn in_a_deadlock_the_pauses_of_its_cycle_have_not_ended() {
    let (text, topology) = ring("");
    let context = context_with("ring.toml", &topology);
    let done = finish(&scenario_in(&context, &text, &[("measure.pauses", "*")]));
    let names = done.texts("links", "name");
    let last: Vec<_> = pauses(&done).into_iter().filter(|pause| pause.4 == "not-yet").collect();
    assert!(last.iter().all(|pause| pause.3 == done.number("simulated_s")), "{last:?}");
    for port in ["s0->s1", "s1->s2", "s2->s0"] {
        assert!(last.iter().any(|pause| names[pause.0 as usize] == port), "{port} is stuck");
    }
}

#[test]
fn ports_share_the_rows_and_others_have_none() {
    let four = |more: &str| {
        let text = format!(
            "schema = 1\n[fabric]\nkind = 'star'\nhosts = 6\nhost_rate = '10 Gbit/s'\n\
             [fabric.pfc]\n[[class]]\nname = 'frames'\npriority = 3\n[[workload]]\nname = 'frames'\n\
             kind = 'ethernet'\npattern = 'pairs'\nsources = ['h0', 'h1', 'h2', 'h3']\n\
             destinations = ['h4', 'h4', 'h4', 'h5']\nload = 0.6\nframes = 12000\n\
             [measure]\npauses = ['h0', 'h1->switch0']\n{more}"
        );
        outcome(&text, &[])
    };
    let (all, few) = (four(""), four("pauses_rows = 9\n"));
    assert_eq!((all.count("pauses.left_out"), few.count("pauses.rows")), (0, 8));
    assert_eq!(all.count("pauses.rows"), few.count("pauses.rows") + few.count("pauses.left_out"));
    let of = |done: &Outcome, link| {
        pauses(done).into_iter().filter(|pause| pause.0 == link).collect::<Vec<_>>()
    };
    for link in [0, 2] {
        assert_eq!(of(&few, link), of(&all, link)[..4], "the first ones");
    }
    assert_eq!(of(&all, 0).len() + of(&all, 2).len(), pauses(&all).len());
}
