//! Workloads whose processes react to messages: applications of Eastwest, and applications that
//! users add.

use super::ground::Ground;
use crate::scenario::hosts;
use eastwest_settings::reader::{Section, key};
use eastwest_types::{ClassId, HostId, Span, Time};
use eastwest_workload::application::{
    ApplicationConfig, ApplicationEntry, BUILT_IN, Model, ReadApplication, Role,
};
use std::sync::Arc;

/// An application that scenarios may name.
#[derive(Clone)]
pub struct Choice {
    /// Name of the application: the `kind` of a workload.
    pub name: &'static str,
    /// Explanation of the application in one line, for the list of kinds.
    pub doc: &'static str,
    roles: Arc<[Role]>,
    read: Arc<ReadApplication>,
}

/// Returns all applications that scenarios may name: the built-in applications, then `others`.
pub fn choices(others: &[ApplicationEntry]) -> Vec<Choice> {
    let built_in = BUILT_IN.iter().map(|named| Choice {
        name: named.name,
        doc: named.doc,
        roles: named.roles.into(),
        read: Arc::new(named.read),
    });
    let others = others.iter().map(|other| Choice {
        name: other.entry.name,
        doc: other.entry.doc,
        roles: other.roles.clone(),
        read: other.entry.read.clone(),
    });
    built_in.chain(others).collect()
}

/// Reads the settings of an application, including the hosts of its processes. `name` and `class`
/// are the name and the traffic class of the workload.
pub fn read(
    s: &mut Section,
    choice: &Choice,
    ground: &Ground,
    (name, class): (&str, ClassId),
) -> ApplicationConfig {
    let start: Span = s.get(
        key("start", "Time at which the processes start.").default("0 s").range("0 s", "480 h"),
    );
    let all = || (0..ground.nodes.map_or(0, |n| n.hosts())).map(HostId).collect();
    let of_role = |role: &Role| {
        let named = hosts::read_list(s, role.name, role.doc, Some("all hosts"), ground.nodes);
        named.unwrap_or_else(all)
    };
    let hosts = choice.roles.iter().map(of_role).collect();
    let model: Model = (choice.read)(s);
    let roles = choice.roles.clone();
    ApplicationConfig {
        model,
        name: name.to_owned(),
        roles,
        hosts,
        start: Time::ZERO + start,
        class,
    }
}
