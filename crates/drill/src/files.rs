//! Files of zeroes, which a script makes with `dd` and sends with `sendfile`. None exists outside the
//! dialogue: only their size is kept.

use crate::calls::Does;
use crate::problem::{Place, Problem};
use crate::run::Player;
use crate::script::{Call, Value};
use crate::sockets::Outcome;

impl Player<'_> {
    pub(crate) fn open_file(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let Some(Value::Text(name)) = call.arguments.first() else {
            return Err(Problem::new(place, "open() needs a name"));
        };
        let Some(size) = self.setup.files.get(name).copied() else {
            return Ok(Does::Returns(Outcome::Error("ENOENT")));
        };
        let number = self.new_number(call);
        self.sockets.files.insert(number, size);
        Ok(Does::Returns(Outcome::Value(number)))
    }

    pub(crate) fn sendfile(&mut self, call: &Call, place: Place) -> Result<Does, Problem> {
        let problem = |message: &str| Problem::new(place, message);
        let file = match call.arguments.get(1) {
            Some(Value::Number(n)) => self.sockets.files.get(n).copied(),
            _ => None,
        };
        let offset = match call.arguments.get(2) {
            Some(Value::List(all)) => all.first(),
            other => other,
        };
        let (Some(size), Some(Value::Number(offset)), Some(Value::Number(count))) =
            (file, offset, call.arguments.get(3))
        else {
            return Err(problem("sendfile() needs a socket, an open file, [offset] and a number"));
        };
        let rest = (size as i64).saturating_sub((*offset).max(0)).max(0);
        self.send(call, place, rest.min((*count).max(0)), None)
    }
}
