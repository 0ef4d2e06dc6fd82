// Scenario S1 in htsim (https://github.com/Broadcom/csg-htsim): 160 hosts on a leaf-spine of 1 and
// 10 Gbit/s, eight flows from each host, drop-tail of 200 packets. Built against its library:
//
//   make -C HTSIM/sim libhtsim.a CFLAGS='-std=c++11 -O3 -march=native'
//   g++ -std=c++11 -O3 -march=native -I HTSIM/sim htsim_s1.cpp HTSIM/sim/libhtsim.a -o htsim_s1
//   ./htsim_s1 [bytes of a flow] [1 to count packet-hops]
//
// htsim's TCP is NewReno without SACK, with source routes and a fixed least timeout of 250 ms; its
// packets have one size, so 1,448 bytes of a flow are taken as one packet of 1,500. The simulating
// part is timed by itself: `run_user` leaves out building the network.

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

namespace {

const int kLeaves = 4, kHostsPerLeaf = 40, kSpines = 2, kHosts = kLeaves * kHostsPerLeaf;
const int kPacket = 1500, kPayload = 1448, kQueuePackets = 200;
uint64_t hops = 0;
int unfinished = 0;

class CountingPipe : public Pipe {
  public:
    explicit CountingPipe(simtime_picosec delay) : Pipe(delay) {}
    void receivePacket(Packet& packet) override {
        ++hops;
        Pipe::receivePacket(packet);
    }
};

class Flow : public TcpSrc {
  public:
    Flow(EventList& events, uint64_t bytes) : TcpSrc(nullptr, nullptr, events), bytes_(bytes) {
        set_flowsize(bytes);
        _ssthresh = 0xffffffff;
        _maxcwnd = 1 << 20;
    }
    void doNextEvent() override {
        if (started_ == 0) {  // it is also called for the retransmission timer
            started_ = eventlist().now();
        }
        TcpSrc::doNextEvent();
    }
    void receivePacket(Packet& packet) override {
        TcpSrc::receivePacket(packet);
        if (ended_ == 0 && _last_acked >= bytes_) {
            ended_ = eventlist().now();
            --unfinished;
        }
    }
    double seconds() const { return (ended_ - started_) * 1e-12; }
    double end_s() const { return ended_ * 1e-12; }

  private:
    uint64_t bytes_;
    simtime_picosec started_ = 0, ended_ = 0;
};

struct Link {
    std::unique_ptr<Queue> queue;
    std::unique_ptr<Pipe> pipe;
    Link(EventList& events, uint64_t bps, bool count)
        : queue(new Queue(bps, mem_b(kQueuePackets) * kPacket, events, nullptr)),
          pipe(count ? new CountingPipe(timeFromUs(5.0)) : new Pipe(timeFromUs(5.0))) {}
};

uint32_t mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

double user_s() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_utime.tv_usec * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
    const uint64_t bytes = argc > 1 ? strtoull(argv[1], nullptr, 10) : 4000000;
    const bool count = argc > 2 && atoi(argv[2]) != 0;
    std::ofstream nowhere("/dev/null");  // every flow says when it is done
    std::streambuf* out = std::cout.rdbuf(nowhere.rdbuf());
    Packet::set_packet_size(kPacket);
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(300));

    std::vector<Link> up, down, leaf_up, leaf_down;
    for (int host = 0; host < kHosts; ++host) {
        up.emplace_back(events, speedFromMbps(uint64_t(1000)), count);
        down.emplace_back(events, speedFromMbps(uint64_t(1000)), count);
    }
    for (int i = 0; i < kLeaves * kSpines; ++i) {
        leaf_up.emplace_back(events, speedFromMbps(uint64_t(10000)), count);
        leaf_down.emplace_back(events, speedFromMbps(uint64_t(10000)), count);
    }
    auto add = [](Route* route, const Link& link) {
        route->push_back(link.queue.get());
        route->push_back(link.pipe.get());
    };
    auto path = [&](int from, int to, uint32_t hash) {
        Route* route = new Route();
        add(route, up[from]);
        const int a = from / kHostsPerLeaf, b = to / kHostsPerLeaf;
        if (a != b) {
            const int spine = hash % kSpines;
            add(route, leaf_up[a * kSpines + spine]);
            add(route, leaf_down[b * kSpines + spine]);
        }
        add(route, down[to]);
        return route;
    };

    TcpRtxTimerScanner timers(timeFromMs(10), events);
    std::vector<std::unique_ptr<Flow>> flows;
    std::vector<std::unique_ptr<TcpSink>> sinks;
    const uint64_t size = (bytes + kPayload - 1) / kPayload * kPacket;
    uint32_t x = 12345;
    for (int host = 0; host < kHosts; ++host) {
        for (int k = 1; k <= 8; ++k) {
            x = x * 1664525u + 1013904223u;
            const double start_us = (x >> 8) / 16777216.0 * 1000.0;
            const int to = (host + 19 * k) % kHosts;
            flows.emplace_back(new Flow(events, size));
            sinks.emplace_back(new TcpSink());
            timers.registerTcp(*flows.back());
            Route* there = path(host, to, mix(x));
            Route* back = path(to, host, mix(~x));
            there->push_back(sinks.back().get());
            back->push_back(flows.back().get());
            flows.back()->connect(*there, *back, *sinks.back(), timeFromUs(start_us));
        }
    }
    unfinished = int(flows.size());

    const double before = user_s();
    while (unfinished > 0 && events.doNextEvent()) {
    }
    const double took = user_s() - before;

    std::cout.rdbuf(out);
    std::vector<double> times;
    double last = 0, sum = 0;
    for (const auto& flow : flows) {
        times.push_back(flow->seconds());
        sum += flow->seconds();
        last = std::max(last, flow->end_s());
    }
    std::sort(times.begin(), times.end());
    printf("flows=%zu/%zu last=%.9f meanFCT=%.6f p99=%.6f run_user=%.3f\n",
           flows.size() - unfinished, flows.size(), last, sum / times.size(),
           times[size_t(0.99 * (times.size() - 1))], took);
    if (count) {
        printf("hops=%llu\n", (unsigned long long)hops);
    }
    return unfinished != 0;
}
