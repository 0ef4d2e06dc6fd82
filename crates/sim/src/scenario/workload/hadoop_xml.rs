//! Reader of Hadoop's configuration files: `<configuration>` with `<property>` elements, like
//! `mapred-site.xml` and the configuration in a job history (Hadoop, class `Configuration`). Files
//! compressed with gzip are recognized by their first bytes.
//!
//! The text is read as a stream of events, without a tree. A document type is refused, so that the
//! text has no entities beyond the five of XML, and no other file is opened. Hadoop follows
//! `<include>`; this reader refuses it, because it may refer to any file.

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Error, Reader, XmlVersion};

/// Maximum size in bytes of an unpacked configuration file: four times the size of a job's
/// configuration in Hadoop 3.
pub const MOST_BYTES: u64 = 1 << 20;
/// Maximum number of properties in a configuration file.
const MOST_PROPERTIES: usize = 20_000;
/// Maximum nesting of XML elements; Hadoop needs three levels.
const DEEPEST: usize = 16;

/// A property of a Hadoop configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Property {
    /// Name of the property in the file.
    pub name: String,
    /// Value, with references `${name}` not yet replaced.
    pub value: String,
    /// Whether later files must not change the value of the property (`final`).
    pub fixed: bool,
    /// Line of the property in the file, counted from 1.
    pub line: usize,
}

/// Returns all properties of a Hadoop configuration file (XML) in the order of the file. Fails with the first problem and its line.
pub fn read(bytes: &[u8]) -> Result<Vec<Property>, String> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("is too large: at most {MOST_BYTES} bytes are read"));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| "is not text in UTF-8 encoding".to_owned())?;
    let mut walk = Walk { text, counted: 0, line: 1, open: Vec::new(), found: Vec::new() };
    let mut reader = Reader::from_str(text);
    loop {
        let event = reader.read_event();
        let at = usize::try_from(reader.buffer_position()).unwrap_or(text.len());
        walk.count_lines(at);
        let more = match event {
            Ok(event) => walk.take(event),
            Err(error) => {
                let at = usize::try_from(reader.error_position()).unwrap_or(0);
                walk.line = 1 + newlines(&text.as_bytes()[..at.min(text.len())]);
                Err(format!("is not XML: {}", said(&error)))
            }
        };
        match more {
            Ok(true) => {}
            Ok(false) => return Ok(walk.found),
            Err(message) => return Err(format!("line {}: {message}", walk.line)),
        }
    }
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b == b'\n').count()
}

/// Returns a description of an error of the XML reader. It does not contain text of the file, which
/// is untrusted.
fn said(error: &Error) -> &'static str {
    match error {
        Error::Syntax(_) => "something is not closed, such as a tag, a comment or a reference",
        Error::IllFormed(_) => "tags do not match",
        Error::InvalidAttr(_) => "an attribute does not have the form name=\"value\"",
        Error::Encoding(_) => "a part is not UTF-8",
        _ => "a part is not valid XML",
    }
}

/// Type of an open XML element, which determines the meaning of the text in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Element {
    Configuration,
    Property,
    Name,
    Value,
    Final,
    Other,
}

/// State of the reader: open elements, and properties found so far.
struct Walk<'t> {
    text: &'t str,
    /// Number of bytes at the start of the text in which lines have been counted.
    counted: usize,
    line: usize,
    open: Vec<Element>,
    found: Vec<Property>,
}

impl Walk<'_> {
    fn count_lines(&mut self, to: usize) {
        let to = to.clamp(self.counted, self.text.len());
        self.line += newlines(&self.text.as_bytes()[self.counted..to]);
        self.counted = to;
    }

    /// Processes an event of the XML reader. Returns `false` at the end of the file.
    fn take(&mut self, event: Event) -> Result<bool, String> {
        match event {
            Event::Start(start) => self.start(&start)?,
            Event::Empty(start) => {
                self.start(&start)?;
                self.end()?;
            }
            Event::End(_) => self.end()?,
            Event::Text(text) => self.collect(&text.decode().map_err(not_text)?)?,
            Event::CData(text) => self.collect(&text.decode().map_err(not_text)?)?,
            Event::GeneralRef(reference) => {
                let meant = resolve(&reference)?;
                self.collect(&meant)?;
            }
            Event::DocType(_) => {
                return Err("has a document type (<!DOCTYPE>), which is not allowed".to_owned());
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if !self.open.is_empty() => {
                return Err("ends inside an element; the file may have been cut off".to_owned());
            }
            Event::Eof if self.counted == 0 => return Err("is empty".to_owned()),
            Event::Eof => return Ok(false),
        }
        Ok(true)
    }

    fn start(&mut self, tag: &BytesStart) -> Result<(), String> {
        let outer = self.open.last().copied();
        let element = match (outer, tag.name().as_ref()) {
            (_, b"include" | b"xi:include") => {
                return Err("includes another file: add that file to hadoop_files".to_owned());
            }
            (None | Some(Element::Configuration), b"configuration") => Element::Configuration,
            (None, _) => {
                return Err("is not a Hadoop configuration: its first element must be \
                            <configuration>"
                    .to_owned());
            }
            (Some(Element::Configuration), b"property") => Element::Property,
            (Some(Element::Property), b"name") => Element::Name,
            (Some(Element::Property), b"value") => Element::Value,
            (Some(Element::Property), b"final") => Element::Final,
            _ => Element::Other,
        };
        if self.open.len() >= DEEPEST {
            return Err(format!("nests elements more than {DEEPEST} deep"));
        }
        self.open.push(element);
        if element == Element::Property {
            if self.found.len() >= MOST_PROPERTIES {
                return Err(format!("has more than {MOST_PROPERTIES} properties"));
            }
            self.found.push(Property { line: self.line, ..Property::default() });
            self.attributes(tag)?;
        }
        Ok(())
    }

    /// Reads a property in the short form `<property name="…" value="…" final="true"/>`.
    fn attributes(&mut self, tag: &BytesStart) -> Result<(), String> {
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|_| "has an attribute without value".to_owned())?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|_| "has an attribute that is not valid XML".to_owned())?;
            let Some(property) = self.found.last_mut() else { continue };
            match attribute.key.as_ref() {
                b"name" => property.name = value.trim().to_owned(),
                b"value" => property.value = value.into_owned(),
                b"final" => property.fixed = value.trim() == "true",
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        // The XML reader has already checked that start and end tags match.
        if self.open.pop() == Some(Element::Property) {
            let property = self.found.last_mut();
            if let Some(property) = property {
                property.name = property.name.trim().to_owned();
                if property.name.is_empty() {
                    return Err("has a property without name".to_owned());
                }
            }
        }
        Ok(())
    }

    fn collect(&mut self, text: &str) -> Result<(), String> {
        let Some(&element) = self.open.last() else {
            let blank = text.trim_start_matches('\u{feff}').trim().is_empty();
            return if blank { Ok(()) } else { Err("has text outside its elements".to_owned()) };
        };
        let Some(property) = self.found.last_mut() else { return Ok(()) };
        match element {
            Element::Name => property.name.push_str(text),
            Element::Value => property.value.push_str(text),
            Element::Final => property.fixed |= text.trim() == "true",
            _ => {}
        }
        Ok(())
    }
}

fn not_text<E>(_: E) -> String {
    "a part is not UTF-8".to_owned()
}

/// Returns the text of a character reference (`&#65;`), or of one of the five named entities of
/// XML.
fn resolve(reference: &BytesRef) -> Result<String, String> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Ok(character.to_string());
    }
    let name = reference.decode().map_err(not_text)?;
    let known = resolve_predefined_entity(&name).map(str::to_owned);
    known.ok_or_else(|| "refers to an entity that is not predefined in XML".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str, fixed: bool, line: usize) -> Property {
        Property { name: name.to_owned(), value: value.to_owned(), fixed, line }
    }

    #[test]
    fn properties_are_read_with_their_lines() {
        let text = "<?xml version=\"1.0\"?>\n<!-- site -->\n<configuration>\n<property>\n  <name> \
                    io.sort.mb </name><value>200</value>\n<final>true</final><source>x</source>\
                    </property>\n<property name=\"a.b\" value=\"&lt;1&#65;\"/>\n<property>\
                    <value><![CDATA[${x}&]]> &amp;</value><name>c</name></property>\
                    </configuration>\n";
        let expected = [
            one("io.sort.mb", "200", true, 4),
            one("a.b", "<1A", false, 7),
            one("c", "${x}& &", false, 8),
        ];
        assert_eq!(read(text.as_bytes()).expect("a configuration"), expected);
    }

    #[test]
    fn what_is_no_configuration_is_refused_with_its_line() {
        let refused = |text: &str| read(text.as_bytes()).unwrap_err();
        assert!(refused("").contains("is empty"));
        assert!(refused("<html></html>").contains("is not a Hadoop configuration"));
        assert!(refused("<configuration>\n<property>\n").contains("line 3: ends inside"));
        assert!(refused("<configuration>\n</property>").starts_with("line 2: is not XML"));
        assert!(refused("<configuration><property/></configuration>").contains("without name"));
        assert!(refused("<configuration/>x").contains("outside"));
        assert!(
            refused("<configuration>\n<xi:include href='/etc/passwd'/></configuration>")
                .starts_with("line 2: includes another file")
        );
        assert!(read(b"\xff\xfe").unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn bombs_and_entities_are_refused() {
        let refused = |text: &str| read(text.as_bytes()).unwrap_err();
        let bomb = "<!DOCTYPE c [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><configuration/>";
        assert!(refused(bomb).contains("document type"));
        let external = "<configuration><property><name>a</name><value>&b;</value></property>\
                        </configuration>";
        assert!(refused(external).contains("refers to an entity"));
        let deep = format!("<configuration>{}", "<a>".repeat(100_000));
        assert!(refused(&deep).contains("more than 16 deep"));
        let many = format!("<configuration>{}", "<property name='a'/>".repeat(30_000));
        assert!(refused(&many).contains("more than 20000 properties"));
        assert!(refused(&" ".repeat(MOST_BYTES as usize + 1)).contains("too large"));
    }
}
