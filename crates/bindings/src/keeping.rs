//! Saving of a run in progress: regular checkpoints, and the rows of tables that grow with the run.
//! A Python object, the keeper, decides where checkpoints and rows are stored, and what is printed;
//! see `Keeper` in python/eastwest/core.py.

use crate::convert::tables_dict;
use eastwest_sim::checkpoint::{self, Identity, Keep, Kept};
use eastwest_sim::results::{hand_out, handed_out, holds};
use eastwest_sim::scenario::Scenario;
use eastwest_sim::site::Site;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum wall-clock time since the last checkpoint for which a checkpoint is written when a run
/// is interrupted. If less time has passed, a resumed run repeats the work since the last
/// checkpoint.
const WORTH_KEEPING: Duration = Duration::from_secs(10);

/// While a checkpoint is written, its file is forced to disk (fdatasync) each time this number of
/// bytes has been written. Each wait for the disk, in which Ctrl-C is not checked, is then short.
const SYNC_EVERY: usize = 64 << 20;

/// Saving of a run in progress: regular checkpoints, and rows of tables that grow with the run.
pub struct Keeping {
    keeper: Py<PyAny>,
    identity: Identity,
    /// Reason why no checkpoint of this run can be written; `None` if checkpoints can be written.
    obstacle: Option<&'static str>,
    told: bool,
    every: Duration,
    /// Time between two checks for Ctrl-C while a checkpoint is written.
    look_every: Duration,
    /// Number of rows from which a growing table moves its rows to the Python object that stores
    /// them.
    most_rows: usize,
    last: Instant,
    /// Path of the checkpoint file, chosen by the Python object that stores the run; `None` until
    /// it is needed.
    place: Option<PathBuf>,
    /// Whether nothing more is saved: the Python object that stores the run has named no path for
    /// it, or writing has failed.
    given_up: bool,
}

impl Keeping {
    /// Returns the state of saving for a run that begins now. `keeper` is the Python object that
    /// stores checkpoints and rows. Fails if `keeper` lacks a required attribute.
    pub fn new(
        py: Python<'_>,
        keeper: Py<PyAny>,
        scenario: &Scenario,
        reference: bool,
    ) -> PyResult<Keeping> {
        let of = keeper.bind(py);
        let seconds = |name: &str| -> PyResult<Duration> {
            let value: f64 = of.getattr(name)?.extract()?;
            Ok(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX))
        };
        let build = of.getattr("build")?.extract()?;
        #[allow(clippy::disallowed_methods)]
        let last = Instant::now();
        Ok(Keeping {
            identity: Identity { build, plan: checkpoint::plan(scenario, reference) },
            obstacle: checkpoint::obstacle(scenario),
            every: seconds("every_s")?,
            look_every: seconds("look_every_s")?,
            most_rows: of.getattr("most_rows")?.extract()?,
            told: false,
            last,
            place: None,
            given_up: false,
            keeper,
        })
    }

    /// Returns the checkpoint that an earlier run of this plan has saved. `None` if there is no
    /// checkpoint, if it cannot be loaded, or if the Python object `keeper` declines to resume it.
    pub fn resume(&mut self) -> PyResult<Option<Kept>> {
        if self.obstacle.is_some() {
            return Ok(None);
        }
        let ask = |py: Python<'_>| -> PyResult<Option<PathBuf>> {
            self.keeper.bind(py).call_method1("find", (&self.identity.plan,))?.extract()
        };
        let Some(place) = Python::attach(ask)? else {
            return Ok(None);
        };
        let run = fs::read(&place).map_err(|e| e.to_string()).and_then(|bytes| {
            checkpoint::load(&bytes, &self.identity).map_err(|refused| refused.to_string())
        });
        Python::attach(|py| {
            let keeper = self.keeper.bind(py);
            match run {
                Ok(run) => {
                    let rows = rows_handed_out(py, &run)?;
                    let goes_on: bool = keeper
                        .call_method1("resume", (run.now().as_secs_f64(), rows))?
                        .extract()?;
                    Ok(goes_on.then_some(run))
                }
                Err(why) => keeper.call_method1("refuse", (why,)).map(|_| None),
            }
        })
    }

    /// Whether a regular checkpoint is due: the time between two checkpoints has passed, and saving
    /// has not ended.
    pub fn is_due(&self) -> bool {
        !self.is_over() && self.last.elapsed() >= self.every
    }

    /// Whether a run that stops now is worth saving: at least 10 s, or the time between two
    /// checkpoints if that is shorter, have passed since the last checkpoint.
    pub fn is_worth_it(&self) -> bool {
        !self.is_over() && self.last.elapsed() >= self.every.min(WORTH_KEEPING)
    }

    /// Whether no further checkpoint of this run will be written.
    fn is_over(&self) -> bool {
        self.given_up || self.told
    }

    /// Returns the path of the checkpoint. The Python object `keeper` chooses the path at the first
    /// call. `None` if `keeper` does not save this run, or if saving has failed.
    pub fn place(&mut self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        if self.place.is_none() && !self.given_up {
            let keeper = self.keeper.bind(py);
            self.place = keeper.call_method1("place", (&self.identity.plan,))?.extract()?;
            self.given_up = self.place.is_none();
        }
        Ok(self.place.clone())
    }

    /// Moves rows to the Python object `keeper` from each table that grows with the run and holds
    /// at least `most_rows` rows.
    pub fn hand_rows(&mut self, py: Python<'_>, site: &mut Site) -> PyResult<()> {
        while !self.given_up {
            // The path is requested before rows are removed from a table: removed rows must be
            // stored.
            if !holds(site, self.most_rows) || self.place(py)?.is_none() {
                break;
            }
            let before = handed_out(site);
            let Some(table) = hand_out(site, self.most_rows) else { break };
            let first = before.iter().find(|(name, _)| *name == table.name).map_or(0, |b| b.1);
            let part = tables_dict(py, vec![table])?;
            self.keeper.bind(py).call_method1("take", (part, first))?;
        }
        Ok(())
    }

    /// Tells the Python object `keeper` why no checkpoint of this run can be written. Does nothing
    /// if checkpoints can be written.
    pub fn tell_obstacle(&mut self) -> PyResult<()> {
        let Some(why) = self.obstacle else { return Ok(()) };
        self.told = true;
        Python::attach(|py| self.keeper.bind(py).call_method1("give_up", (why,)).map(|_| ()))
    }

    /// Writes a checkpoint of `run`. If the file cannot be written, saving ends but the run
    /// continues. Ctrl-C stops the writing: the error is then the Python exception, and an earlier
    /// checkpoint remains. If the run is `stopping`, a long write is reported to the user, who
    /// waits for it.
    pub fn keep(&mut self, run: &Keep, stopping: bool) -> PyResult<()> {
        if self.obstacle.is_some() {
            return self.tell_obstacle();
        }
        let Some(place) = Python::attach(|py| self.place(py))? else {
            return Ok(());
        };
        let mut raised = None;
        let written = write(&place, |file| {
            #[allow(clippy::disallowed_methods)]
            let (looked, raised) = (Instant::now(), &mut raised);
            let (keeper, look_every) = (&self.keeper, self.look_every);
            let told = !stopping;
            let to = Patient { file, keeper, raised, look_every, looked, told, not_synced: 0 };
            checkpoint::save(run, &self.identity, to)
        });
        if let Some(raised) = raised {
            return Err(raised);
        }
        #[allow(clippy::disallowed_methods)]
        {
            self.last = Instant::now();
        }
        Python::attach(|py| {
            let keeper = self.keeper.bind(py);
            match written {
                Ok(()) => keeper.call_method1("kept", (run.now().as_secs_f64(),)).map(|_| ()),
                Err(error) => {
                    self.given_up = true;
                    keeper.call_method1("give_up", (error.to_string(),)).map(|_| ())
                }
            }
        })
    }
}

/// Returns, by table, the number of rows that have been moved to Python.
fn rows_handed_out<'py>(py: Python<'py>, run: &Kept) -> PyResult<Bound<'py, PyDict>> {
    let rows = PyDict::new(py);
    for (table, count) in handed_out(run.first()) {
        rows.set_item(table, count)?;
    }
    Ok(rows)
}

/// Writes a file atomically: under a temporary name beside `place`, forced to disk, then renamed.
fn write(place: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let beside = place.with_extension("partial");
    let written = File::create(&beside).and_then(|mut file| {
        fill(&mut file)?;
        file.flush()?;
        file.sync_all()?;
        fs::rename(&beside, place)?;
        File::open(place.parent().unwrap_or(Path::new(".")))?.sync_all()
    });
    if written.is_err() {
        // the incomplete file is of no use
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Writer to a file that regularly checks for Ctrl-C. At its first check it calls the method
/// `writing` of the Python object `keeper`, which tells the user of the long write, unless `told`
/// is already set.
struct Patient<'a> {
    file: &'a mut File,
    keeper: &'a Py<PyAny>,
    /// Python exception (such as Ctrl-C) that has stopped the writing; `None` if there was none.
    raised: &'a mut Option<PyErr>,
    look_every: Duration,
    looked: Instant,
    told: bool,
    /// Bytes written to the file since it was last forced to disk.
    not_synced: usize,
}

impl Patient<'_> {
    fn look(&mut self) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            if !self.told {
                self.told = true;
                self.keeper.bind(py).call_method0("writing")?;
            }
            Ok(())
        })
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let since = self.looked.elapsed();
        if since >= self.look_every {
            self.looked += since;
            if let Err(raised) = self.look() {
                *self.raised = Some(raised);
                return Err(io::Error::other("interrupted"));
            }
        }
        let written = self.file.write(bytes)?;
        self.not_synced += written;
        if self.not_synced >= SYNC_EVERY {
            self.not_synced = 0;
            self.file.sync_data()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
