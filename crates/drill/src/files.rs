//! Files of zeroes, which a script creates with `dd` and sends with `sendfile`. Only their sizes
//! are stored; no real file is created.

use crate::script::{Call, Value};
use crate::system::{Answer, System, error, value};
use crate::transfer::send;

/// Executes open(): opens a file that the script has created with `dd`. For other files it returns
/// `ENOENT`.
pub fn open(system: &mut System, call: &Call) -> Answer {
    let Some(Value::Text(name)) = call.argument(0) else {
        return call
            .fail("the first argument of open() must be the name of a file in quotation marks");
    };
    let Some(size) = system.setup.files.get(name).copied() else { return error("ENOENT") };
    let number = system.new_number(call);
    system.sockets.files.insert(number, size);
    value(number)
}

/// Executes sendfile(): writes a part of an open file to a socket.
pub fn sendfile(system: &mut System, call: &Call) -> Answer {
    let file = call.number(1).and_then(|n| system.sockets.files.get(&n).copied());
    let (Some(size), Some(Value::Number(offset)), Some(count)) =
        (file, call.first_of(2), call.number(3))
    else {
        return call.fail(
            "sendfile() needs four arguments: a socket, an open file, [offset] and a number of \
             bytes",
        );
    };
    let rest = (size as i64).saturating_sub((*offset).max(0)).max(0);
    send(system, call, rest.min(count.max(0)), None)
}
