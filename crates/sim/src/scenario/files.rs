//! Input files of a scenario. A file must be below the directory of the scenario or among the data
//! that ships with Eastwest, and the size of files is limited. All files are recorded, so that a
//! result folder contains all inputs of its run.

use eastwest_mechanism::Mechanisms;
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories, files and mechanisms that a scenario may use.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Directory of the scenario file.
    pub base_dir: PathBuf,
    /// Directory of the data that ships with Eastwest.
    pub data_dir: PathBuf,
    /// Files in memory, by the name that scenarios use. A file in memory has priority over a file
    /// on disk with the same name.
    pub files: BTreeMap<String, Arc<[u8]>>,
    /// Mechanisms of other crates that scenarios may name, in addition to the built-in mechanisms.
    pub mechanisms: Mechanisms,
}

impl Context {
    /// Whether `name` is a folder below the directory of the scenario.
    pub fn is_folder(&self, name: &str) -> bool {
        !self.files.contains_key(name) && self.base_dir.join(name).is_dir()
    }
}

/// An input file that a scenario reads, with its name in the scenario text with all defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Name of the file in the scenario text with all defaults, relative to the directory of the
    /// scenario.
    pub name: String,
    /// Content of the file; empty if `path` is given.
    pub bytes: Arc<[u8]>,
    /// Path of a file that is too large for memory and is read during the run; `None` for other
    /// files.
    pub path: Option<PathBuf>,
}

/// Name of the folder in a result folder that contains the input files, beside `scenario.toml`.
const FOLDER: &str = "inputs";

/// Input files that have been read or recorded so far, while a scenario is read.
#[derive(Default)]
pub struct Files {
    /// Input files in the order of reading, without duplicates.
    pub attached: Vec<Attached>,
}

impl Files {
    /// Reads the file `name` of the scenario and records it as an input file, unpacked if it is
    /// compressed with gzip. Fails with a message if the file does not exist, has more than `most`
    /// bytes, packed or unpacked, or is outside the scenario's directory. A file of `context.files`
    /// may have any size.
    pub fn load(&mut self, context: &Context, name: &str, most: u64) -> Result<Attached, String> {
        let bytes = match context.files.get(name) {
            Some(bytes) => bytes.clone(),
            None => read_below(&context.base_dir, name, most)?,
        };
        self.attach_unpacked(name, bytes, most)
    }

    /// Reads a file that ships with Eastwest, with at most `most` bytes, and records it as an input
    /// file. `name` is the name of the file in scenarios, `file` its path below the data directory.
    pub fn load_shipped(
        &mut self,
        context: &Context,
        name: &str,
        file: &str,
        most: u64,
    ) -> Result<Attached, String> {
        let bytes = match context.files.get(name) {
            Some(bytes) => bytes.clone(),
            None => read_below(&context.data_dir, file, most)?,
        };
        self.attach_unpacked(file, bytes, most)
    }

    /// Records an input file by the last part of its path, unpacked if it is compressed.
    fn attach_unpacked(
        &mut self,
        path: &str,
        bytes: Arc<[u8]>,
        most: u64,
    ) -> Result<Attached, String> {
        let base = path.rsplit('/').next().unwrap_or(path);
        match unpack(&bytes, most)? {
            Some(unpacked) => {
                // Nothing, `.` and `..` are no names of files.
                let rest =
                    base.strip_suffix(".gz").filter(|rest| !rest.trim_matches('.').is_empty());
                Ok(self.attach(rest.unwrap_or(base), unpacked))
            }
            None => Ok(self.attach(base, bytes)),
        }
    }

    /// Records an input file as `inputs/base`, or `inputs/2-base` and so on if another file has
    /// this name. A file with equal content is recorded only once.
    fn attach(&mut self, base: &str, bytes: Arc<[u8]>) -> Attached {
        for number in 1u32.. {
            let prefix = if number == 1 { String::new() } else { format!("{number}-") };
            let name = format!("{FOLDER}/{prefix}{base}");
            match self.attached.iter().find(|a| a.name == name) {
                Some(same) if same.bytes == bytes => return same.clone(),
                Some(_) => {}
                None => {
                    self.attached.push(Attached { name, bytes, path: None });
                    break;
                }
            }
        }
        self.attached.last().cloned().expect("the file has just been added")
    }
}

impl Files {
    /// Records input files, given as (name, path), without reading them: as files of the folder
    /// `inputs/base`, or of `inputs/2-base` … if other files are recorded there. Returns the name
    /// of the folder.
    pub fn attach_folder(&mut self, base: &str, files: &[(String, PathBuf)]) -> String {
        for number in 1u32.. {
            let prefix = if number == 1 { String::new() } else { format!("{number}-") };
            let folder = format!("{FOLDER}/{prefix}{base}");
            let within = format!("{folder}/");
            let attached = || self.attached.iter().filter(|a| a.name.starts_with(&within));
            let new = files.iter().map(|(name, path)| Attached {
                name: format!("{within}{name}"),
                bytes: Arc::from([]),
                path: Some(path.clone()),
            });
            let new: Vec<Attached> = new.collect();
            if attached().eq(new.iter()) {
                return folder;
            }
            if attached().next().is_none() && self.attached.iter().all(|a| a.name != folder) {
                self.attached.extend(new);
                return folder;
            }
        }
        unreachable!("there is always another number")
    }
}

/// Returns the path of a file or folder below `dir`, with symbolic links resolved. Fails with a
/// message if the path does not exist or is outside `dir`.
pub fn find_below(dir: &Path, name: &str) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => format!("does not exist in {}", dir.display()),
        _ => format!("cannot be read: {e}"),
    };
    let dir_found = dir.canonicalize().map_err(failed)?;
    let path = dir.join(name).canonicalize().map_err(failed)?;
    if !path.starts_with(&dir_found) {
        return Err(format!("is outside the directory {}", dir.display()));
    }
    Ok(path)
}

/// Reads a regular file below `dir`, with symbolic links resolved. Fails with a message if the file
/// has more than `most` bytes or is outside `dir`.
pub fn read_below(dir: &Path, name: &str, most: u64) -> Result<Arc<[u8]>, String> {
    let failed = |e: std::io::Error| format!("cannot be read: {e}");
    let path = find_below(dir, name)?;
    // Opening a named pipe would block for ever, so the type of the file is checked first.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(failed)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(format!("is too large: at most {most} bytes are read"));
    }
    Ok(bytes.into())
}

/// Returns the content of a file that is compressed with gzip; `None` if it is not compressed. Fails
/// with a message if the content has more than `most` bytes, or is damaged.
pub fn unpack(bytes: &[u8], most: u64) -> Result<Option<Arc<[u8]>>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(most.saturating_add(1)).read_to_end(&mut unpacked);
    read.map_err(|error| format!("cannot be unpacked: {error}"))?;
    if unpacked.len() as u64 > most {
        return Err(format!("is too large: at most {most} bytes are read"));
    }
    Ok(Some(unpacked.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn files_compressed_with_gzip_are_unpacked() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&[b'x'; 1000]).expect("in memory");
        let packed = packed.finish().expect("in memory");
        let mut context = context();
        context.files.insert("a/t.tsv.gz".to_owned(), packed.clone().into());
        let mut files = Files::default();
        let file = files.load(&context, "a/t.tsv.gz", 1000).expect("in memory");
        assert_eq!((file.name.as_str(), file.bytes.len()), ("inputs/t.tsv", 1000));
        let refused = files.load(&context, "a/t.tsv.gz", 999).unwrap_err();
        assert_eq!(refused, "is too large: at most 999 bytes are read");
        for odd in [".gz", "..gz", "...gz"] {
            context.files.insert(odd.to_owned(), packed.clone().into());
            let name = Files::default().load(&context, odd, 1000).expect("in memory").name;
            assert_eq!(name, format!("inputs/{odd}"));
        }
        let half = unpack(&packed[..packed.len() / 2], 1000).unwrap_err();
        assert!(half.contains("cannot be unpacked"), "{half}");
        assert_eq!(unpack(b"plain", 1000), Ok(None));
        let mut bomb = GzEncoder::new(Vec::new(), Compression::default());
        bomb.write_all(&vec![b' '; 20 << 20]).expect("in memory");
        let bomb = bomb.finish().expect("in memory");
        assert!(bomb.len() < 1 << 16);
        assert!(unpack(&bomb, 1 << 20).unwrap_err().contains("too large"));
    }

    fn context() -> Context {
        Context {
            base_dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
            ..Context::default()
        }
    }

    #[test]
    fn files_are_found_below_the_directory_only() {
        let mut files = Files::default();
        assert!(files.load(&context(), "lib.rs", 1 << 20).is_ok());
        let outside = files.load(&context(), "../Cargo.toml", 1 << 20).unwrap_err();
        assert!(outside.contains("is outside the directory"), "{outside}");
        let shipped = Context { data_dir: context().base_dir, ..Context::default() };
        let outside = files.load_shipped(&shipped, "x", "../Cargo.toml", 9).unwrap_err();
        assert!(!outside.contains("of the scenario"), "{outside}");
        assert!(files.load(&context(), "nothing", 1).unwrap_err().contains("does not exist"));
        assert!(files.load(&context(), "scenario", 1).unwrap_err().contains("regular file"));
        assert!(files.load(&context(), "lib.rs", 3).unwrap_err().contains("too large"));
    }

    #[test]
    fn attached_files_have_names_of_their_own() {
        let mut context = context();
        context.files.insert("a/t.tsv".to_owned(), (*b"one").into());
        context.files.insert("b/t.tsv".to_owned(), (*b"two").into());
        let mut files = Files::default();
        let mut name = |path: &str| files.load(&context, path, 10).expect("in memory").name;
        assert_eq!(name("a/t.tsv"), "inputs/t.tsv");
        assert_eq!(name("b/t.tsv"), "inputs/2-t.tsv");
        assert_eq!(name("a/t.tsv"), "inputs/t.tsv");
        assert_eq!(files.attached.len(), 2);
    }
}
