//! A mechanism crate (the user's own Rust crate) as a Python module that contains the whole
//! simulator; see [`mechanisms!`](crate::mechanisms!).

use eastwest_mechanism::Mechanisms;

/// A mechanism crate (the user's own Rust crate): its name, its version and its mechanisms.
pub struct Own {
    /// Name of the mechanism crate.
    pub name: &'static str,
    /// Version of the mechanism crate.
    pub version: &'static str,
    /// Absolute path of the folder that holds the mechanism crate's `Cargo.toml`.
    pub folder: &'static str,
    /// Whether the mechanism crate was compiled for development, with overflow checks.
    pub development: bool,
    /// Mechanisms of the crate, which scenarios may use by name.
    pub mechanisms: Mechanisms,
}

/// Makes the Python module of a mechanism crate, which `eastwest run --with FOLDER` loads. The
/// argument is a function that adds the mechanisms of the crate. The crate must declare
/// `eastwest-bindings` as a dependency under the name `eastwest`.
#[macro_export]
macro_rules! mechanisms {
    ($add:expr) => {
        #[$crate::pyo3::pymodule]
        #[pyo3(name = "mechanisms", crate = "eastwest::pyo3")]
        fn eastwest_mechanisms(
            m: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>,
        ) -> $crate::pyo3::PyResult<()> {
            let add: fn(&mut $crate::Mechanisms) = $add;
            let mut mechanisms = $crate::Mechanisms::default();
            add(&mut mechanisms);
            let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
            let (folder, development) = (env!("CARGO_MANIFEST_DIR"), cfg!(debug_assertions));
            $crate::fill(m, Some($crate::Own { name, version, folder, development, mechanisms }))
        }
    };
}
