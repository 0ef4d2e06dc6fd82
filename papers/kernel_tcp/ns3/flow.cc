// A single flow in ns-3 over the path of ../scenarios/flow.toml: sender 1 Gbit/s, bottleneck
// 100 Mbit/s, round trip 10 ms. Prints a row every 5 ms: time, window and threshold in segments
// (0: never set), whether in fast recovery, the last round-trip sample; and at last, after "#", bytes
// delivered, seconds, packets dropped in the first second and in all. run.py builds and runs it.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <string>

using namespace ns3;

namespace
{
constexpr uint32_t SEGMENT = 1448;
// A packet of 1500 B takes as long as without the two bytes of PPP that ns-3 adds.
constexpr double PPP = 1502.0 / 1500.0;

uint64_t total = 115000000;
uint64_t written = 0;
uint64_t arrived = 0;
uint32_t window = 0;
uint32_t threshold = 0;
bool recovering = false;
double rttMs = 0;
uint64_t drops = 0;
uint64_t earlyDrops = 0;
Time begun;
bool sending = false;
double lasted = 0;

void
Fill(Ptr<Socket> socket, uint32_t)
{
    while (written < total && socket->GetTxAvailable() > 0)
    {
        auto bytes = std::min<uint64_t>({total - written, socket->GetTxAvailable(), 65536});
        int sent = socket->Send(Create<Packet>(bytes));
        if (sent <= 0)
        {
            return;
        }
        written += sent;
    }
}

void
Sample()
{
    std::printf("%.3f,%.1f,%.1f,%d,%.4f\n",
                (Simulator::Now() - begun).GetSeconds(),
                double(window) / SEGMENT,
                double(threshold) / SEGMENT,
                recovering ? 1 : 0,
                rttMs);
    Simulator::Schedule(MilliSeconds(5), &Sample);
}

void
Connected(Ptr<Socket> socket)
{
    begun = Simulator::Now();
    sending = true;
    Fill(socket, 0);
    Sample();
}

void
Arrived(Ptr<const Packet> packet, const Address&)
{
    arrived += packet->GetSize();
    if (arrived >= total && lasted == 0)
    {
        lasted = (Simulator::Now() - begun).GetSeconds();
        Simulator::Stop();
    }
}

void
CountDrop()
{
    drops++;
    if (sending && Simulator::Now() - begun < Seconds(1))
    {
        earlyDrops++;
    }
}

void
PacketDropped(Ptr<const Packet>)
{
    CountDrop();
}

void
ItemDropped(Ptr<const QueueDiscItem>)
{
    CountDrop();
}

} // namespace

int
main(int argc, char** argv)
{
    std::string control = "ns3::TcpLinuxReno";
    std::string queue = "50p";
    bool codel = false;
    bool hystart = true;
    uint32_t run = 1;
    CommandLine line(__FILE__);
    line.AddValue("control", "type of congestion control", control);
    line.AddValue("queue", "packets that the bottleneck holds", queue);
    line.AddValue("codel", "CoDel, 5 ms and 100 ms, in place of drop-tail", codel);
    line.AddValue("hystart", "HyStart of TcpCubic", hystart);
    line.AddValue("run", "number of the run", run);
    line.Parse(argc, argv);
    RngSeedManager::SetRun(run);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(control)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(4)));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(hystart));

    NodeContainer nodes;
    nodes.Create(3);
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(1e9 * PPP))));
    access.SetChannelAttribute("Delay", TimeValue(MicroSeconds(2500)));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));
    PointToPointHelper narrow;
    narrow.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(1e8 * PPP))));
    narrow.SetChannelAttribute("Delay", TimeValue(MicroSeconds(2500)));
    narrow.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(codel ? "1p" : queue));
    NetDeviceContainer first = access.Install(nodes.Get(0), nodes.Get(1));
    NetDeviceContainer second = narrow.Install(nodes.Get(1), nodes.Get(2));
    InternetStackHelper().Install(nodes);

    if (codel)
    {
        TrafficControlHelper discs;
        discs.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue(queue));
        Ptr<QueueDisc> disc = discs.Install(second.Get(0)).Get(0);
        disc->TraceConnectWithoutContext("Drop", MakeCallback(&ItemDropped));
    }
    else
    {
        // Traffic control stops sending to a full device, and drops itself.
        nodes.Get(1)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop",
            MakeCallback(&PacketDropped));
    }
    Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
    addresses.Assign(first);
    addresses.NewNetwork();
    Ipv4InterfaceContainer far = addresses.Assign(second);
    // An address gives every device without a discipline one of its own: FqCoDel.
    TrafficControlHelper none;
    none.Uninstall(first);
    none.Uninstall(second.Get(1));
    if (!codel)
    {
        none.Uninstall(second.Get(0));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    ApplicationContainer sinks = sink.Install(nodes.Get(2));
    sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));

    Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
    socket->TraceConnectWithoutContext(
        "CongestionWindow",
        Callback<void, uint32_t, uint32_t>([](uint32_t, uint32_t now) { window = now; }));
    socket->TraceConnectWithoutContext(
        "SlowStartThreshold",
        Callback<void, uint32_t, uint32_t>([](uint32_t, uint32_t now) { threshold = now; }));
    socket->TraceConnectWithoutContext(
        "CongState",
        Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
            [](TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
                recovering = now == TcpSocketState::CA_RECOVERY;
            }));
    socket->TraceConnectWithoutContext(
        "RTT",
        Callback<void, Time, Time>([](Time, Time now) { rttMs = now.GetSeconds() * 1e3; }));
    socket->SetConnectCallback(MakeCallback(&Connected), MakeNullCallback<void, Ptr<Socket>>());
    socket->SetSendCallback(MakeCallback(&Fill));
    window = 10 * SEGMENT;
    Simulator::Schedule(MilliSeconds(1), [&] {
        socket->Connect(InetSocketAddress(far.GetAddress(1), 9));
    });
    Simulator::Stop(Seconds(30));
    Simulator::Run();
    std::printf("# %lu,%.6f,%lu,%lu\n", arrived, lasted, earlyDrops, drops);
    Simulator::Destroy();
    return 0;
}
