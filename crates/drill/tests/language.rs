//! Tests of the supported syntax of scripts, and of the error messages for wrong scripts.

use eastwest_drill::drill;
use eastwest_drill::profile::Profile;

/// Begin of a script: passive open of a connection with a round-trip time of 50 ms.
const OPEN: &str = "`defaults.sh`
 0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0   bind(3, ..., ...) = 0
+0   listen(3, 1) = 0
+0   < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0   > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
+.05 < . 1:1(0) ack 1 win 1000
+0   accept(3, ..., ...) = 4
";

/// Returns the error message of a script that begins with [`OPEN`] and continues with `rest`; empty
/// if it passes. Line numbers count from the first line of `rest`.
fn tell(rest: &str) -> String {
    let outcome = drill(&format!("{OPEN}{rest}"), None, false);
    outcome.problem.map_or_else(String::new, |p| {
        let line = i64::from(p.place.line) - OPEN.lines().count() as i64;
        format!("{line}:{}: {}", p.place.column, p.message)
    })
}

#[track_caller]
fn fails(rest: &str, message: &str) {
    let found = tell(rest);
    assert!(found.starts_with(message), "expected {message}\nfound {found}");
}

#[track_caller]
fn passes(rest: &str) {
    assert_eq!(tell(rest), "");
}

#[test]
fn times_in_all_forms() {
    for time in ["+0", "0.05", ".05", "*", "+0~+.01", "0.045~0.055", "+.003"] {
        passes(&format!("+0 write(4, ..., 1000) = 1000\n{time} > P. 1:1001(1000) ack 1\n"));
    }
    for time in ["+.01", "0.06", "+.005~+.02", "0.06~0.07"] {
        let script = format!("+0 write(4, ..., 1000) = 1000\n{time} > P. 1:1001(1000) ack 1\n");
        fails(&script, "2:1: the packet is not the one expected: it left at 0.050000");
    }
    fails("+.2~+.1 > . 1:1(0)\n", "1:6: the end of the time range is before its start");
}

#[test]
fn a_tolerance_is_an_eighth_and_never_more_than_20_ms() {
    let again = |t: &str| {
        format!(
            "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n{t} > P. 1:1001(1000) ack 1\n"
        )
    };
    // The tail loss probe is sent 256 ms after the last segment: the retransmission timeout expires
    // before 2 round trips and 200 ms have passed.
    let found = tell(&again("+.1"));
    let at = found.split("it left at 0.").nth(1).or(found.split("actual:   0.").nth(1)).unwrap();
    let probe: f64 = format!("0.{}", &at[..6]).parse::<f64>().unwrap() - 0.05;
    for off in [-0.019, 0.019] {
        passes(&again(&format!("+{:.6}", probe + off)));
    }
    for off in [-0.021, 0.021] {
        fails(&again(&format!("+{:.6}", probe + off)), "3:1: ");
    }
}

#[test]
fn runs_of_segments_match_one_expected_packet() {
    let write = "+0 write(4, ..., 5000) = 5000\n";
    passes(&format!("{write}+0 > P. 1:5001(5000) ack 1\n"));
    passes(&format!("{write}+0 > . 1:2001(2000) ack 1\n+0 > P. 2001:5001(3000) ack 1\n"));
    fails(&format!("{write}+0 > P. 1:4501(4500) ack 1\n"), "2:1: the packet is not");
    fails(&format!("{write}+0 > P. 1:6001(6000) ack 1\n"), "2:1: the packet is not");
    fails(&format!("{write}+0 > P. 1001:5001(4000) ack 1\n"), "2:1: the packet is not");
    let strict = |packets: &str| {
        drill(&format!("--strict_segments\n{OPEN}{write}{packets}"), None, false).problem
    };
    assert_eq!(strict("+0 > . 1:1001(1000) ack 1\n+0 > . 1001:2001(1000) ack 1\n"), None);
    assert!(strict("+0 > . 1:2001(2000) ack 1\n").is_some());
}

#[test]
fn unexpected_packets_are_found_by_the_next_expectation() {
    let script = "+0 write(4, ..., 2000) = 2000\n+0 > . 1:1001(1000) ack 1\n\
        +.05 < . 1:1(0) ack 2001 win 1000\n+0 write(4, ..., 1000) = 1000\n\
        +0 > P. 2001:3001(1000) ack 1\n";
    fails(script, "5:1: the packet is not the one expected: the first sequence number is 1001");
}

#[test]
fn sequence_numbers_may_begin_anywhere() {
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 4294967290:4294967290(0) win 65535 <mss 1000,sackOK,nop,wscale 7>
+0 > S. 700:700(0) ack 4294967291 <mss 1460,sackOK,nop,wscale 7>
+.05 < . 4294967291:4294967291(0) ack 701 win 1000
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 2000) = 2000
+0 > . 701:2701(2000) ack 4294967291
+.01 < . 95:1095(1000) ack 701 win 1000 <sack 1701:2701,nop,nop>
+0 > . 2701:2701(0) ack 4294967291 <nop,nop,sack 95:1095>
";
    assert_eq!(drill(script, None, false).problem, None);
}

#[test]
fn calls_return_what_is_said_and_when() {
    fails("+0 write(4, ..., 1000) = 999\n", "1:1: write() returns 1000, not 999");
    fails("+0 read(4, ..., 1000) = 0\n", "1:1: the script expects read() to return at once");
    fails("+0...0.1 read(4, ..., 9) = 5\n+.05 < P. 1:6(5) ack 1 win 9\n", "1:1: read() returns at");
    fails(
        "+0...0.1 read(4, ..., 9) = 5\n+.2 < P. 1:6(5) ack 1 win 9\n",
        "1:1: the script expects read() to return at 0.150000 s",
    );
    passes("+0...0.1 read(4, ..., 9) = 5\n+.1 < P. 1:6(5) ack 1 win 9\n");
    fails("+0 write(9, ..., 1000) = 1000\n", "1:1: no open socket of the script has the number 9");
    fails("+0 accept(3, ..., ...) = 5\n", "1:1: the script expects accept() to return at once");
    passes("+0 shutdown(4, SHUT_WR) = 0\n+0 write(4, ..., 1) = -1 EPIPE (Broken pipe)\n");
    fails("+0 write(4, ..., 99999999999) = 0\n", "1:1: the number of bytes must not be negative");
}

#[test]
fn events_and_ancillary_data_are_compared() {
    let poll = |revents: &str, result: i64| {
        format!("+0 poll([{{fd=4, events=POLLOUT, revents={revents}}}], 1, 0) = {result}\n")
    };
    passes(&poll("POLLOUT", 1));
    fails(&poll("POLLIN", 1), "1:1: poll() reports the events OUT, not IN");
    fails(&poll("POLLOUT", 0), "1:1: poll() returns 1, not 0");
    fails(&poll("POLLUTE", 1), "1:1: the poll or epoll event POLLUTE is not simulated");
    fails(
        "+0 epoll_wait(9, {events=0, ptr=0}, 1, 0) = 0\n",
        "1:1: no epoll_create() of the script has returned the number 9",
    );
    passes(
        "+0...0.05 poll([{fd=4, events=POLLIN, revents=0}], 1, 50) = 0\n+.2 write(4, ..., 1) = 1\n",
    );
    fails(
        "+0 setsockopt(4, SOL_TCP, TCP_INQ, [1], 4) = 0\n+0 < P. 1:301(300) ack 1 win 9\n\
         +0 recvmsg(4, {msg_iov(1)=[{..., 200}], msg_control=[{cmsg_level=SOL_TCP,\
         cmsg_type=TCP_CM_INQ, cmsg_data=99}]}, 0) = 200\n",
        "3:1: cmsg_data is 100, not 99",
    );
    passes("+0 write(4, NULL, 1) = -1 EFAULT (Bad address)\n");
    fails(
        "+0 sendfile(4, 9, [0], 5) = 5\n",
        "1:1: sendfile() needs four arguments: a socket, an open file",
    );
}

#[test]
fn what_is_not_known_is_refused_with_its_place() {
    for (script, message) in [
        ("+0 < U. 1:1(0) ack 1\n", "1:6: urgent data (flag U) is not simulated"),
        ("+0 < X 1:1(0)\n", "1:6: unknown flag 'X'"),
        ("+0 < . 1:2(2) ack 1\n", "1:8: the sequence numbers 1:2 span 1 bytes"),
        (
            "+0 < . 1:1(0) ack 1 win 70000\n",
            "1:25: the window is 70000, but at most 65535 is allowed",
        ),
        (
            "+0 < . 1:1(0) ack 1 win 1 <sac 1:2>\n",
            "1:28: unknown TCP option 'sac'; did you mean 'sack'?",
        ),
        ("+0 < . 1:1(0) ack 1 win 1 <FO abcd>\n", "1:28: the TCP option 'FO' is not simulated"),
        ("+0 < udp (1000)\n", "1:6: only TCP packets are simulated"),
        ("+0 < 53 > 1000 . 1:1(0)\n", "1:6: port numbers are not supported"),
        ("+0 writ(4, ..., 1) = 1\n", "1:4: unknown system call 'writ'; did you mean 'write'?"),
        (
            "+0 setsockopt(4, SOL_TCP, TCP_REPAIR, [1], 4) = 0\n",
            "1:1: the socket option TCP_REPAIR",
        ),
        (
            "+0 send(4, ..., 1, MSG_EOR) = 1\n",
            "1:1: the send or receive flag MSG_EOR is not simulated",
        ),
        ("+0 %{ assert tcpi_snd_cwn == 10 }%\n", "1:14: the field"),
        ("+0 %{ asert 1 }%\n", "1:7: 'asert': only assert"),
        ("+0 `rm -rf /`\n", "1:5: the command 'rm -rf /' is not supported"),
        (
            "+0 `sysctl -q net.ipv4.tcp_frot=1`\n",
            "1:15: the setting net.ipv4.tcp_frot is unknown; did",
        ),
        ("+0 `sysctl -q net.ipv4.tcp_sack=0`\n", "1:15: this setting must come before"),
        ("+0 bogus\n", "1:4: expected the name of a system call"),
        ("+0\n", "2:1: expected a packet"),
    ] {
        fails(script, message);
    }
    let option = drill(&format!("--tolerance_usec=5\n{OPEN}"), None, false).problem.unwrap();
    assert_eq!(
        option.to_string(),
        "1:1: unknown option --tolerance_usec; did you mean 'tolerance_usecs'?"
    );
    let empty = drill("// nothing\n", None, false);
    assert!(!empty.readable && empty.problem.is_some());
}

#[test]
fn variables_last_from_snippet_to_snippet() {
    passes(
        "+0 %{ w = tcpi_snd_cwnd }%\n+0 %{ assert w == 10; w += 1 }%\n+0 %{ assert w == 11 }%\n",
    );
    fails(
        "+0 %{\nassert 1 == 1\nassert tcpi_snd_cwnd == 11, 'w=%d' % tcpi_snd_cwnd\n}%\n",
        "3:1: assertion failed: tcpi_snd_cwnd == 11: w=10 (tcpi_snd_cwnd is 10)",
    );
}

#[test]
fn the_profile_of_the_caller_goes_before_that_of_the_script() {
    let script = format!("--profile=classic\n{OPEN}+0 %{{ assert tcpi_snd_cwnd == 2 }}%\n")
        .replace("sackOK,", "")
        .replace("nop,nop,nop,wscale 7", "nop,wscale 7");
    let script = script.replace("nop,nop,nop,wscale 8", "nop,wscale 8");
    let passes = |profile| drill(&script, profile, false).problem.is_none();
    assert!(passes(None) && passes(Some(Profile::Classic)) && !passes(Some(Profile::Linux)));
}
