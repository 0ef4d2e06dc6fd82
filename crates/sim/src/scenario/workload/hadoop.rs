//! The keys `hadoop` and `hadoop_files`: a cluster described by Hadoop's own properties.
//!
//! Files are layered as in Hadoop: a later file replaces values of earlier files, unless the values
//! are `final`. Properties in the scenario have priority over files, like `-D` on the command line.
//! References `${name}` are replaced, at most twenty levels deep as in Hadoop. Variables of the
//! environment and of the Java virtual machine are not replaced.
//!
//! [`super::hadoop_names`] defines the meaning of each property. Its value becomes a preset, the
//! default of a key that the scenario does not contain, and is checked like this key. A scenario
//! that contains a key and its property with different values is refused.

use super::ground::Ground;
use super::hadoop_layers::{DEEPEST, Given, Layers};
use super::hadoop_names::{self as names, Form, MODELLED, Modelled, OF_YARN};
use super::{hadoop_rules, hadoop_xml};
use crate::scenario::files::Files;
use eastwest_settings::problem::{nearest, shorten};
use eastwest_settings::quantity::{Bytes, FileName, Fraction, Properties, Quantity, Ratio};
use eastwest_settings::reader::{Section, key};
use eastwest_types::Span;
use std::collections::BTreeMap;
use toml::Value;

/// Names of property sets that ship with Eastwest: the values of Hadoop 0.20 for the properties
/// that Chen et al. (2012) tune, and the tuned values.
const SHIPPED: [&str; 2] = ["default-0.20", "tuned-0.20"];

/// Maximum number of Hadoop configuration files of a workload.
const MOST_FILES: usize = 16;
/// Maximum size in bytes of a Hadoop configuration file on disk; the file may be compressed.
const MOST_BYTES: u64 = hadoop_xml::MOST_BYTES;
/// Reads the keys `hadoop` and `hadoop_files`. The values of Hadoop properties become presets
/// (defaults) of the keys of the workload `s` that the scenario does not contain.
pub fn read(s: &mut Section, ground: &Ground, files: &mut Files, notes: &mut Vec<String>) {
    let inline: Option<Properties> = s.find(
        key(
            "hadoop",
            "Hadoop properties by their own names, old or new. They set those keys of this \
             workload that the scenario does not give.",
        )
        .optional("none"),
    );
    let listed: Option<Vec<FileName>> = s.find(
        key(
            "hadoop_files",
            "Hadoop configuration files, such as mapred-site.xml or the configuration in a job \
             history, also compressed with gzip; or default-0.20 and tuned-0.20, which ship with \
             Eastwest. A later file overrides an earlier one.",
        )
        .optional("none"),
    );
    let mut layers = Layers::default();
    for name in read_files(s, ground, files, listed.unwrap_or_default()) {
        let (file, properties) = name;
        let (complaints, kept) = layers.add(&file, properties);
        for complaint in complaints {
            s.wrong("hadoop_files", complaint);
        }
        if kept > 0 {
            notes.push(format!(
                "{}: {kept} properties are not changed, because an earlier file \
                                declares them final",
                shorten(&file)
            ));
        }
    }
    for (name, reason) in layers.set(&inline.unwrap_or(Properties(BTreeMap::new()))) {
        s.wrong_below("hadoop", &name, reason, None);
    }
    judge(s, &layers, notes);
}

/// Returns the name and the properties of each Hadoop configuration file in `listed`. Reports files
/// that cannot be read as problems.
fn read_files(
    s: &mut Section,
    ground: &Ground,
    files: &mut Files,
    listed: Vec<FileName>,
) -> Vec<(String, Vec<hadoop_xml::Property>)> {
    let (mut read, mut attached) = (Vec::new(), Vec::new());
    if listed.len() > MOST_FILES {
        s.wrong("hadoop_files", format!("names more than {MOST_FILES} files, the maximum"));
        return read;
    }
    for FileName(name) in &listed {
        let loaded = if SHIPPED.contains(&name.as_str()) {
            let file = format!("hadoop/{name}.xml");
            files.load_shipped(ground.context, name, &file, MOST_BYTES)
        } else {
            files.load(ground.context, name, MOST_BYTES)
        };
        let parsed = loaded.and_then(|file| {
            attached.push(FileName(file.name));
            hadoop_xml::read(&file.bytes)
        });
        match parsed {
            Ok(properties) => {
                let base_of =
                    |FileName(name): &FileName| name.rsplit('/').next().unwrap_or(name).to_owned();
                let base = base_of(&FileName(name.clone()));
                // files with one base name in several folders are named with their folders
                let alone = listed.iter().filter(|other| base_of(other) == base).count() == 1;
                read.push((if alone { base } else { name.clone() }, properties));
            }
            Err(message) => s.wrong("hadoop_files", format!("{}: {message}", shorten(name))),
        }
    }
    if !listed.is_empty() && s.good(&["hadoop_files"]) {
        s.resolve_as("hadoop_files", attached.show());
    }
    read
}

/// Reports a problem with a Hadoop property: at the key `hadoop` if the scenario contains the
/// property, otherwise at `hadoop_files` with file and line.
fn complain(s: &mut Section, given: &Given, message: &str, hint: Option<String>) {
    match &given.place {
        None => s.wrong_below("hadoop", &given.name, message.to_owned(), hint),
        Some(_) => {
            let value = shorten(given.value.trim());
            s.wrong_hint("hadoop_files", format!("{} = {value}: {message}", given.said()), hint);
        }
    }
}

/// Checks every Hadoop property. A setting of the model becomes a preset; other properties are
/// ignored with a note, or are reported if they are unknown or contradict each other.
fn judge(s: &mut Section, layers: &Layers, notes: &mut Vec<String>) {
    let (mut elsewhere, mut strange) = (0usize, Vec::new());
    let yarn = on_yarn(s, layers);
    let of_yarn = if yarn { OF_YARN } else { &[] };
    if !yarn {
        notes.extend(memory_ignored(layers));
    }
    for setting in MODELLED.iter().chain(of_yarn) {
        if let Some(given) = layers.given(setting.name) {
            take(s, layers, setting, given);
        }
    }
    let is_setting = |name: &str| MODELLED.iter().chain(OF_YARN).any(|m| m.name == name);
    for (name, given) in &layers.all {
        if is_setting(name) {
            continue;
        }
        if let Some(granted) = names::GRANTED.iter().find(|g| g.name == name) {
            match layers.expand(&given.value, DEEPEST) {
                Ok(value) if value == granted.value || value.is_empty() => {}
                Ok(value) => notes.push(format!(
                    "{} = {} is not modelled: {}",
                    given.said(),
                    shorten(&value),
                    granted.about
                )),
                Err(message) => complain(s, given, &message, None),
            }
        } else {
            if names::is_named(name) {
                elsewhere += 1;
                continue;
            }
            let near = nearest(name, names::candidates().iter().copied());
            let likely = near.filter(|near| strsim::damerau_levenshtein(near, name) <= 2);
            if likely.is_none() && names::is_elsewhere(name) {
                elsewhere += 1;
            } else if names::is_own(name) || likely.is_some() {
                let message = "is not a property that Eastwest knows";
                complain(s, given, message, near.map(str::to_owned));
            } else {
                strange.push(shorten(name));
            }
        }
        if s.state().full() {
            break;
        }
    }
    if elsewhere > 0 {
        notes.push(format!(
            "{elsewhere} Hadoop properties are ignored, because they concern parts of Hadoop \
             that are not modelled"
        ));
    }
    if let Some(first) = strange.first() {
        let count = strange.len();
        notes.push(format!(
            "{count} properties are ignored, because they are not properties of \
                            Hadoop; the first is {first}"
        ));
    }
    for (name, message) in hadoop_rules::contradictions(layers) {
        if let Some(given) = layers.given(name) {
            complain(s, given, &message, None);
        }
    }
}

/// Whether the framework that assigns tasks is YARN, according to the workload's key `framework`
/// or, without the key, to the Hadoop properties.
fn on_yarn(s: &Section, layers: &Layers) -> bool {
    match s.own("framework") {
        Some(own) => own.as_str() == Some("yarn"),
        None => layers.value("mapreduce.framework.name") == Some(Ok("yarn".to_owned())),
    }
}

/// Returns a note if tasks are assigned to slots (Hadoop 1) although the properties give the memory
/// of YARN containers.
fn memory_ignored(layers: &Layers) -> Option<String> {
    let mut given = names::CONTAINER_MEMORY.iter().filter_map(|name| layers.given(name));
    let first = given.next()?;
    let others = match given.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(format!(
        "{}{others} is ignored: with framework = \"mr1\" map_slots and reduce_slots limit the \
         number of tasks of a worker, and memory has no effect. Use framework = \"yarn\" to limit \
         the tasks by the memory of containers",
        first.said()
    ))
}

/// Uses a Hadoop property as a preset of the keys of `setting`. Reports a problem if its value is
/// wrong, or differs from the value of a key in the scenario.
fn take(s: &mut Section, layers: &Layers, setting: &Modelled, given: &Given) {
    if setting.form == Form::Heap && !given.value.contains("-Xmx") {
        return; // Java options without a heap size
    }
    let value = layers.expand(&given.value, DEEPEST).and_then(|text| convert(setting.form, &text));
    let value = match value {
        Ok(value) => value,
        Err(message) => return complain(s, given, &message, None),
    };
    for path in setting.keys {
        // A single job may differ from the properties of the cluster, so keys of jobs are not
        // compared.
        let own = if path.starts_with("job.") { None } else { s.own(path) };
        match own {
            Some(own) if differs(setting.form, own, &value) => {
                let message = format!("contradicts {path} of this workload: give only one of them");
                return complain(s, given, &message, None);
            }
            _ => s.preset_below(path, value.clone(), given.said()),
        }
    }
}

/// Whether the value `own` of a key differs from the value of a Hadoop property; false if one of
/// the values cannot be read.
fn differs(form: Form, own: &Value, value: &Value) -> bool {
    fn apart<T: Quantity>(own: &Value, value: &Value) -> bool {
        matches!((T::parse(own), T::parse(value)), (Ok(a), Ok(b)) if a.show() != b.show())
    }
    match form {
        Form::Bytes | Form::Mebibytes | Form::PacketPayload | Form::Heap if own.is_integer() => {
            let value = Bytes::parse(value).ok().and_then(|b| i64::try_from(b.0).ok());
            value.is_some() && own.as_integer() != value
        }
        Form::Bytes | Form::Mebibytes | Form::PacketPayload | Form::Heap => {
            apart::<Bytes>(own, value)
        }
        Form::Millis | Form::Seconds => apart::<Span>(own, value),
        Form::Ratio => apart::<Ratio>(own, value),
        Form::Share => apart::<Fraction>(own, value),
        Form::Count | Form::Flag | Form::Scheduler | Form::Framework | Form::ReplaceDatanode => {
            own.type_str() == value.type_str() && own != value
        }
    }
}

/// Converts the text of a Hadoop property to the value of a scenario key. `form` is the format of
/// the property. Fails with a message that describes valid texts.
pub fn convert(form: Form, text: &str) -> Result<Value, String> {
    let whole = |text: &str| {
        text.parse::<u64>().map_err(|_| "must be a whole number, 0 or more".to_owned())
    };
    Ok(match form {
        Form::Count => {
            let number = i64::try_from(whole(text)?).map_err(|_| "is too large".to_owned())?;
            Value::Integer(number)
        }
        Form::Bytes => Value::String(format!("{} B", bytes(text)?)),
        Form::Mebibytes => Value::String(format!("{} MiB", whole(text)?)),
        Form::PacketPayload => Value::String(format!("{} B", packet_payload(bytes(text)?)?)),
        Form::Heap => {
            let heap = hadoop_rules::heap_option(text);
            let heap = heap.ok_or("must contain a heap size such as -Xmx700m")?;
            Value::String(format!("{heap} B"))
        }
        Form::Millis => Value::String(time(text, ("ms", "milliseconds"))?),
        Form::Seconds => Value::String(time(text, ("s", "seconds"))?),
        Form::ReplaceDatanode => match text.to_ascii_uppercase().as_str() {
            policy @ ("DEFAULT" | "ALWAYS" | "NEVER") => Value::String(policy.to_ascii_lowercase()),
            _ => return Err("must be DEFAULT, ALWAYS or NEVER".to_owned()),
        },
        Form::Share | Form::Ratio => {
            let share = text.parse::<f64>().ok().filter(|x| x.is_finite());
            Value::Float(share.ok_or("must be a number such as 0.05")?)
        }
        Form::Flag => match text {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => return Err("must be true or false".to_owned()),
        },
        Form::Scheduler => Value::String(scheduler(text)?.to_owned()),
        Form::Framework => match text {
            "yarn" => Value::String("yarn".to_owned()),
            "classic" => Value::String("mr1".to_owned()),
            _ => return Err("must be yarn or classic (a jobtracker)".to_owned()),
        },
    })
}

/// Returns the number of bytes in a text such as 134217728 or 128m (suffixes are powers of 1024).
fn bytes(text: &str) -> Result<u64, String> {
    const FORM: &str = "must be a number of bytes, such as 134217728 or 128m";
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(FORM.to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| FORM.to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "is too large".to_owned())
}

/// Returns the file bytes in an HDFS packet of `packet` bytes. The packet contains the longest
/// header, 33 B, and as many chunks as fit, each of 512 B with a checksum of 4 B (Hadoop's
/// `DFSOutputStream.computePacketChunkSize`).
fn packet_payload(packet: u64) -> Result<u64, String> {
    const PIECE: u64 = 512;
    match packet.checked_sub(33).map(|room| room / (PIECE + 4)) {
        None | Some(0) => Err("is too small: must be at least 549 (bytes)".to_owned()),
        Some(pieces) => Ok(pieces * PIECE),
    }
}

/// Returns a time as text of the scenario format, such as `3 s`. A `text` without a unit has the
/// usual unit of the property, which is given as its sign and its name.
fn time(text: &str, (usual, name): (&str, &str)) -> Result<String, String> {
    let form = || format!("must be a number of {name}, or a time such as 3s");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| form())?;
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => usual,
        "ms" => "ms",
        "ns" => "ns",
        "us" => "us",
        "s" => "s",
        "m" => "min",
        "h" => "h",
        "d" => {
            let hours = number.checked_mul(24).ok_or_else(|| "is too large".to_owned())?;
            return Ok(format!("{hours} h"));
        }
        _ => return Err(form()),
    };
    Ok(format!("{number} {unit}"))
}

/// Returns the name in scenarios, such as `fair`, of the scheduler that a Java class implements.
fn scheduler(class: &str) -> Result<&'static str, String> {
    match class.rsplit('.').next().unwrap_or(class) {
        "FifoScheduler" | "JobQueueTaskScheduler" => Ok("fifo"),
        "FairScheduler" => Ok("fair"),
        "CapacityScheduler" | "CapacityTaskScheduler" => Ok("capacity"),
        _ => Err("is not a modelled scheduler: must be FifoScheduler, FairScheduler or \
                  CapacityScheduler"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted() {
        let text = |form, text: &str| convert(form, text).map(|v| v.to_string());
        assert_eq!(text(Form::Bytes, "64m"), Ok("\"67108864 B\"".to_owned()));
        assert_eq!(text(Form::Mebibytes, "100"), Ok("\"100 MiB\"".to_owned()));
        assert_eq!(text(Form::PacketPayload, "65536"), Ok("\"64512 B\"".to_owned()));
        assert_eq!(text(Form::Heap, "-Xmx1k -Xmx200m"), Ok("\"209715200 B\"".to_owned()));
        assert_eq!(text(Form::Framework, "classic"), Ok("\"mr1\"".to_owned()));
        assert_eq!(text(Form::Millis, "3s"), Ok("\"3 s\"".to_owned()));
        assert_eq!(text(Form::Seconds, "3"), Ok("\"3 s\"".to_owned()));
        assert_eq!(text(Form::ReplaceDatanode, "NEVER"), Ok("\"never\"".to_owned()));
        assert_eq!(text(Form::Millis, "2d"), Ok("\"48 h\"".to_owned()));
        assert_eq!(text(Form::Share, "0.05"), Ok("0.05".to_owned()));
        assert_eq!(text(Form::Scheduler, "org.apache.hadoop.FairScheduler"), Ok("\"fair\"".into()));
        for (form, wrong) in [
            (Form::Bytes, "99999999999999999999"),
            (Form::Bytes, "18446744073709551615k"),
            (Form::Bytes, "64 MB"),
            (Form::Count, "-1"),
            (Form::Millis, "3 s"),
            (Form::Seconds, "-3"),
            (Form::ReplaceDatanode, "SOMETIMES"),
            (Form::Share, "NaN"),
            (Form::PacketPayload, "100"),
            (Form::Heap, "-Xms1g"),
            (Form::Framework, "local"),
            (Form::Flag, "yes"),
            (Form::Scheduler, "Other"),
        ] {
            assert!(convert(form, wrong).is_err(), "{form:?} {wrong}");
        }
    }

    #[test]
    fn references_are_bounded() {
        let mut layers = Layers::default();
        let mut put = |name: &str, value: &str| {
            let (name, value) = (name.to_owned(), value.to_owned());
            layers.all.insert(name.clone(), Given::of_scenario(name, value));
        };
        put("a", "${b}/${b}");
        put("b", " x ");
        put("loop", "${loop}");
        put("none", "${env.HOME}");
        put("open", "${a");
        put("p0", "0123456789");
        for i in 1..=12 {
            put(&format!("p{i}"), &format!("${{p{}}}", i - 1).repeat(10));
        }
        put("e0", "");
        for i in 1..=19 {
            put(&format!("e{i}"), &format!("${{e{}}}", i - 1).repeat(100));
        }
        let value = |name: &str| layers.value(name).expect("it is given");
        assert!(value("e19").unwrap_err().contains("more than 10000 times"), "100^19 references");
        assert_eq!(value("a"), Ok("x/x".to_owned()));
        assert_eq!(value("open"), Ok("${a".to_owned()));
        assert!(value("loop").unwrap_err().contains("more than 20 levels"));
        assert!(value("none").unwrap_err().contains("${env.HOME}, but no file sets this property"));
        assert!(value("p12").unwrap_err().contains("grows to more than"));
    }
}
