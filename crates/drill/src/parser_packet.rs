//! Parser of packets: `[ecn] flags start:end(length) ack N win N <options>`.

use crate::lexer::Token;
use crate::parser::Parser;
use crate::problem::{Problem, hint};
use crate::script::{Packet, TcpOption};
use eastwest_types::{ecn, flag};

const IP_WORDS: [(&str, u8); 4] =
    [("noecn", ecn::NOT_ECT), ("ect1", 1), ("ect0", ecn::ECT0), ("ce", ecn::CE)];
const OPTION_WORDS: [&str; 7] = ["mss", "wscale", "sackOK", "sack", "TS", "nop", "eol"];
/// TCP options of packetdrill that the simulated endpoint does not have.
const NOT_HERE: [&str; 4] = ["FO", "FOEXP", "md5", "ECN"];

impl Parser<'_> {
    pub(crate) fn packet(&mut self) -> Result<Packet, Problem> {
        let ecn = self.ip_info()?;
        if let Some(Token::Word(w)) = self.peek()
            && ["udp", "icmp", "ipv4", "ipv6", "gre", "mpls"].contains(&w.as_str())
        {
            return Err(self.problem(format!("only TCP packets are simulated, not '{w}'")));
        }
        if let Some(Token::Number(_)) = self.peek() {
            return Err(self.problem(
                "port numbers are not supported, because a script has only one connection: \
                 remove them",
            ));
        }
        let flags = self.flags()?;
        let place = self.place();
        let start: u32 = self.whole("the first sequence number")?;
        self.want(':')?;
        let end: u32 = self.whole("the sequence number after the last byte")?;
        self.want('(')?;
        let length: u32 = self.whole("the number of bytes")?;
        self.want(')')?;
        if end.wrapping_sub(start) != length {
            let span = end.wrapping_sub(start);
            return place.fail(format!(
                "the sequence numbers {start}:{end} span {span} bytes, but the number in \
                 parentheses is {length}"
            ));
        }
        let ack = if self.takes_word("ack") { Some(self.whole("the ACK")?) } else { None };
        let window = if self.takes_word("win") { Some(self.whole("the window")?) } else { None };
        if matches!(self.peek(), Some(Token::Word(w)) if w == "urg") {
            return Err(self.problem("urgent data is not simulated"));
        }
        let options = if self.takes('<') { self.tcp_options()? } else { Some(Vec::new()) };
        Ok(Packet { ecn, flags, start, length, ack, window, options })
    }

    /// Parses the ECN field of the IP header: `[ect0]` or `(ect0)`; `None` if the script does not
    /// give it.
    fn ip_info(&mut self) -> Result<Option<u8>, Problem> {
        let close = match self.peek() {
            Some(Token::Sign('[')) => ']',
            Some(Token::Sign('(')) => ')',
            _ => return Ok(None),
        };
        self.advance();
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.expected("a setting of the IP header, such as ect0"));
        };
        let Some(known) = IP_WORDS.iter().find(|w| w.0 == word) else {
            let near = hint(word, IP_WORDS.map(|w| w.0));
            return Err(self.problem(format!("'{word}' in the IP header is not simulated{near}")));
        };
        self.advance();
        self.want(close)?;
        Ok(Some(known.1))
    }

    /// Parses TCP flags: letters, and a dot for ACK, without blanks (`S`, `SEW`, `P.`); `-` is no
    /// flag.
    fn flags(&mut self) -> Result<u8, Problem> {
        if self.takes('-') {
            return Ok(0);
        }
        let mut flags = 0;
        let mut next = self.peek();
        let mut any = false;
        while let Some(token) = next {
            match token {
                Token::Sign('.') => flags |= flag::ACK,
                Token::Word(letters) => {
                    for letter in letters.chars() {
                        flags |= self.flag(letter)?;
                    }
                }
                _ => break,
            }
            any = true;
            self.advance();
            next = self.peek_glued();
        }
        if any { Ok(flags) } else { Err(self.expected("flags")) }
    }

    fn flag(&self, letter: char) -> Result<u8, Problem> {
        Ok(match letter {
            'S' => flag::SYN,
            'F' => flag::FIN,
            'P' => flag::PSH,
            'E' => flag::ECE,
            'W' => flag::CWR,
            'R' => flag::RST,
            'U' => return Err(self.problem("urgent data (flag U) is not simulated")),
            'A' => return Err(self.problem("accurate ECN (flag A) is not simulated")),
            _ => {
                return Err(
                    self.problem(format!("unknown flag '{letter}'; known are S F R P E W ."))
                );
            }
        })
    }

    /// Parses TCP options after `<`. Returns `None` for `...`, which stands for any options.
    fn tcp_options(&mut self) -> Result<Option<Vec<TcpOption>>, Problem> {
        if self.peek() == Some(&Token::Dots) {
            self.advance();
            self.want('>')?;
            return Ok(None);
        }
        let mut options = Vec::new();
        loop {
            options.extend(self.tcp_option()?);
            if self.takes('>') {
                return Ok(Some(options));
            }
            self.want(',')?;
        }
    }

    fn tcp_option(&mut self) -> Result<Option<TcpOption>, Problem> {
        let place = self.place();
        let Some(Token::Word(name)) = self.peek() else { return Err(self.expected("an option")) };
        let name = name.clone();
        self.advance();
        Ok(Some(match name.as_str() {
            "nop" | "eol" => return Ok(None),
            "mss" => TcpOption::Mss(self.whole("the MSS")?),
            "wscale" => TcpOption::Wscale(self.scale()?),
            "sackOK" => TcpOption::SackOk,
            "sack" => TcpOption::Sack(self.sack_blocks()?),
            "TS" => {
                if !self.takes_word("val") {
                    return Err(self.expected("'val'"));
                }
                let value = self.whole("the timestamp")?;
                if !(self.takes_word("ecr")) {
                    return Err(self.expected("'ecr'"));
                }
                TcpOption::Timestamp(value, self.whole("the echoed timestamp")?)
            }
            other if NOT_HERE.contains(&other) => {
                return place.fail(format!("the TCP option '{other}' is not simulated"));
            }
            other => {
                let near = hint(other, OPTION_WORDS);
                return place.fail(format!("unknown TCP option '{other}'{near}"));
            }
        }))
    }

    fn scale(&mut self) -> Result<u8, Problem> {
        let place = self.place();
        let scale: u8 = self.whole("the window scale")?;
        if scale > 14 {
            return place.fail("a window scale is at most 14 (RFC 7323)");
        }
        Ok(scale)
    }

    fn sack_blocks(&mut self) -> Result<Vec<(u32, u32)>, Problem> {
        let place = self.place();
        let mut blocks = Vec::new();
        while let Some(Token::Number(_)) = self.peek() {
            let start = self.whole("the start of a block")?;
            self.want(':')?;
            blocks.push((start, self.whole("the end of a block")?));
        }
        match blocks.len() {
            0 => Err(self.expected("SACK blocks")),
            1..=4 => Ok(blocks),
            _ => place.fail("a SACK option must have 1 to 4 blocks"),
        }
    }
}
