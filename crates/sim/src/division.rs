//! Division of a run that has begun into parts (one run on several threads), for MPI programs; and
//! messages and reports of the workloads whose parts act only at their own hosts: MPI programs and
//! transactions.
//!
//! An MPI program opens a connection when a rank first sends to another one. The number of a
//! connection, on which its path depends, is its place in the order of openings of the whole run.
//! Therefore each part executes the beginning of the run undivided, until all connections of the program
//! are open. Then it keeps the state of its own hosts: packets, timers, wake-ups, ranks. The first part
//! also keeps the counts of what has happened.
//!
//! What a host writes to a host of another part is not known there. The part of the writer announces
//! the message ([`Written`]) at the end of the window, one delay of a cable before the first packet of
//! the message can arrive. Reports of ranks and transactions are kept with their
//! [`Place`](crate::part_state::Place) in the order of an undivided run, and united at the end.

use crate::messages::Message;
use crate::network::Source;
use crate::part_state::{PartState, Report, Written};
use crate::site::Site;
use crate::stream_transports::number::TransportNumber;
use crate::world::World;
use eastwest_measure::flows::FlowRow;
use eastwest_types::{EndpointId, HostId, Side};
use eastwest_workload::mpi::Mpi;
use eastwest_workload::{Action, Workload};
use std::collections::BTreeMap;

impl World {
    /// Returns the MPI program of this run; `None` if it has none.
    pub(crate) fn mpi(&self) -> Option<&Mpi> {
        self.site.drivers.all.iter().find_map(|driver| driver.workload.mpi())
    }

    /// Keeps, in a run that has begun and has just become one part of a partitioned run, only the state
    /// of the own hosts. The first part also keeps what it has counted.
    pub(crate) fn keep_own_state(&mut self) {
        let (via, is_first) = (self.part_state().transport, self.partition().part == 0);
        let Site { network, transports, drivers, probes, events, .. } = &mut self.site;
        let partition = network.fabric.partition.as_deref().expect("the run is partitioned");
        let owns = |host| partition.owns(host);
        let own = transports.of_mut(via).partitionable();
        let own = own.expect("a partitioned run has such a transport");
        own.keep_own_counters(is_first, &owns);
        network.timers.retain(|id| owns(own.host_of_timer(TransportNumber::of_timer(id).1)));
        network.card_alarms.retain(&mut network.sources, |card| owns(HostId(card)));
        let mut done = 0;
        for mpi in drivers.all.iter_mut().filter_map(|driver| driver.workload.mpi_mut()) {
            done += mpi.progress_in_network();
            mpi.become_part(is_first, owns);
        }
        drivers.wakes.keep_own(|wake_up| {
            let driver = &drivers.all[usize::from(wake_up.workload)];
            driver.workload.mpi().is_some_and(|mpi| mpi.is_woken(wake_up.token))
        });
        if !is_first {
            *events = 0;
            probes.records.latency.iter_mut().for_each(|class| *class = Default::default());
        }
        network.set(Source::Timers, network.timers.first());
        network.set(Source::Wakes, drivers.wakes.first());
        self.part_state_mut().done = if is_first { done } else { 0 };
        self.keep_own_messages();
        self.finish_window(self.site.network.now);
    }

    /// Keeps the messages of own endpoints, and watches for the last bytes of those that come from
    /// other parts.
    fn keep_own_messages(&mut self) {
        let via = self.part_state().transport;
        let Site { network, transports, .. } = &mut self.site;
        let mut messages = std::mem::take(transports.of_mut(via).messages_mut());
        let transport = transports.of(via);
        messages.retain(|client| {
            let (local, remote) = transport.hosts(client);
            network.owns(local) || network.owns(remote)
        });
        *transports.of_mut(via).messages_mut() = messages;
        for receiver in self.transport().messages().receivers() {
            let (here, there) = self.transport().hosts(receiver);
            let last = self.transport().messages().ends(receiver).last();
            if let Some((end, last)) = self.transport().messages().next_end(receiver).zip(last)
                && self.site.network.owns(here)
                && !self.site.network.owns(there)
            {
                let first = self.transport_in_part().arrived(receiver).first;
                let down = self.down_to(receiver);
                self.site.network.fabric.watch_under_way(
                    down,
                    receiver,
                    (first + end, first + last),
                );
            }
        }
    }

    /// Announces a message that an own endpoint has just written to the part of its receiver.
    pub(crate) fn announce(&mut self, workload: u16, sender: EndpointId, message: Message) {
        let (here, there) = self.transport().hosts(sender);
        if self.replicates() {
            return; // all parts know all messages
        }
        let of = &self.site.drivers.of(workload).workload;
        let is_known = self.site.network.owns(there) || !self.site.network.owns(here);
        if is_known || !of.acts_only_at_own_hosts() {
            return;
        }
        let envelope = of.mpi().and_then(|mpi| mpi.envelope(message.tag));
        let part = self.partition().part_of(there);
        let part_state = self.part_state_mut();
        if part_state.written.len() <= part {
            part_state.written.resize_with(part + 1, Vec::new);
        }
        part_state.written[part].push(Written { workload, sender, message, envelope });
    }

    /// Receives the messages that another part has announced.
    pub(crate) fn receive_written(&mut self, written: &mut Vec<Written>) {
        for Written { workload, sender, message, envelope } in written.drain(..) {
            let via = self.part_state().transport;
            let Site { network, transports, drivers, probes, .. } = &mut self.site;
            let transport = transports.of_mut(via);
            if transport.messages().owner(sender).is_none() {
                continue; // a connection that was opened too late, so that the run is repeated
            }
            let client = if sender.side() == Side::Client { sender } else { sender.peer() };
            transport.send(network, probes, client, sender.side(), message);
            if let (Some(mpi), Some(envelope)) =
                (drivers.all[usize::from(workload)].workload.mpi_mut(), envelope)
            {
                mpi.announce(message.sent, message.tag, envelope);
            }
            self.expect_across(workload, sender, message.end);
        }
    }

    /// Adds the reports of all parts to the records, in the order of an undivided run. Returns the
    /// reason why the run must be repeated undivided, if there is one.
    pub(crate) fn unite_reports(
        &mut self,
        part_state: &mut PartState,
        others: &mut [World],
    ) -> Result<(), &'static str> {
        part_state.reports.sort_by_key(|report| report.0);
        let replicates = self.replicates();
        let records = &mut self.site.probes.records;
        for (number, driver) in self.site.drivers.all.iter_mut().enumerate() {
            let others =
                others.iter_mut().map(|other| &mut other.site.drivers.all[number].workload);
            match &mut driver.workload {
                _ if replicates => {} // all copies are equal
                Workload::Mpi(mpi) => {
                    let is_through = mpi.end_parts(others.filter_map(|workload| workload.mpi()));
                    if !is_through {
                        return Err("an MPI program ended with messages that were not received");
                    }
                }
                Workload::Transactions(mine) => others.for_each(|other| {
                    if let Workload::Transactions(theirs) = other {
                        mine.unite(theirs);
                    }
                }),
                _ => {}
            }
        }
        let mut parts_of_transactions = BTreeMap::new();
        for (_, workload, report) in &part_state.reports {
            if let Report::OfWorkload(Action::TransactionPart { number }) = report {
                *parts_of_transactions.entry((*workload, *number)).or_insert(0) += 1;
            }
        }
        let drivers = self.site.drivers.all.iter_mut();
        let slots = drivers.map(|driver| {
            let mpi = driver.workload.mpi_mut().filter(|_| !replicates);
            mpi.map(Mpi::united_slots)
        });
        let mut slots: Vec<_> = slots.collect();
        let mut united = Vec::new();
        for (place, workload, report) in part_state.reports.drain(..) {
            let now = place.event.0.0.time();
            let of = &mut self.site.drivers.all[usize::from(workload)].workload;
            match (report, of, &mut slots[usize::from(workload)]) {
                (Report::Flow(row), _, Some(slots)) => {
                    records.flow(FlowRow { tag: slots.undivided(row.tag), ..row });
                }
                (Report::Flow(row), _, None) => records.flow(row),
                (Report::OfWorkload(Action::MpiSent { tag }), _, Some(slots)) => slots.send(tag),
                (Report::OfWorkload(Action::MpiReceived { tag }), _, Some(slots)) => {
                    slots.receive(tag);
                }
                (Report::OfWorkload(Action::MpiEntry(entry)), Workload::Mpi(mpi), _) => {
                    if !mpi.unite_entry(now, *entry) {
                        return Err("ranks of an MPI program make different collective calls");
                    }
                }
                (Report::OfWorkload(Action::MpiLeft { communicator }), Workload::Mpi(mpi), _) => {
                    mpi.unite_left(now, communicator, &mut united);
                }
                (
                    Report::OfWorkload(Action::TransactionPart { number }),
                    Workload::Transactions(transactions),
                    _,
                ) => {
                    // the last part that leaves a transaction ends it
                    if let Some(parts) = parts_of_transactions.get_mut(&(workload, number)) {
                        *parts -= 1;
                        if *parts == 0 && transactions.is_done(number) {
                            transactions.complete(number, &mut united);
                        }
                    }
                }
                (Report::OfWorkload(report), ..) => united.push(report),
            }
            for report in united.drain(..) {
                records.take(workload, now, report);
            }
        }
        records.mpi.leave_out(part_state.rows_left_out);
        Ok(())
    }
}
