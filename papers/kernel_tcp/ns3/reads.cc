// Synchronized reads in ns-3 as in ../scenarios/reads.toml: one reader asks N senders for 262,144 B
// each, over connections that last, and asks again when all has arrived. Prints one line: bits per
// second, entries into the loss state (a timeout; one that follows before it is over is not counted
// again), packets dropped. run.py builds and runs it.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace
{
constexpr uint32_t SEGMENT = 1448;
constexpr uint32_t REQUEST = 64;
constexpr uint32_t BLOCK = 262144;
// A packet of 1500 B takes as long as without the two bytes of PPP that ns-3 adds.
constexpr double PPP = 1502.0 / 1500.0;

// The two ends of one connection.
struct Sender
{
    Ptr<Socket> reader;
    Ptr<Socket> server;
    uint64_t toSend = 0;
    uint64_t asked = 0;
    uint64_t arrived = 0;
};

std::vector<Sender> senders;
Ptr<UniformRandomVariable> jitter;
uint32_t rounds = 20;
uint32_t round = 0;
uint32_t open = 0;
uint32_t waiting = 0;
Time begun;
Time ended;
uint64_t timeouts = 0;
uint64_t drops = 0;

void
Ask()
{
    if (round == 0)
    {
        begun = Simulator::Now();
    }
    waiting = senders.size();
    for (auto& sender : senders)
    {
        sender.reader->Send(Create<Packet>(REQUEST));
    }
}

void
Write(uint32_t number)
{
    Sender& sender = senders[number];
    while (sender.toSend > 0 && sender.server->GetTxAvailable() > 0)
    {
        auto bytes = std::min<uint64_t>(sender.toSend, sender.server->GetTxAvailable());
        int sent = sender.server->Send(Create<Packet>(bytes));
        if (sent <= 0)
        {
            return;
        }
        sender.toSend -= sent;
    }
}

void
Begin(uint32_t number)
{
    senders[number].toSend += BLOCK;
    Write(number);
}

void
RequestArrived(uint32_t number, Ptr<Socket> socket)
{
    Sender& sender = senders[number];
    while (Ptr<Packet> packet = socket->Recv())
    {
        sender.asked += packet->GetSize();
    }
    if (sender.asked >= REQUEST)
    {
        sender.asked -= REQUEST;
        Simulator::Schedule(MicroSeconds(jitter->GetInteger(0, 100)), &Begin, number);
    }
}

void
BlockArrived(uint32_t number, Ptr<Socket> socket)
{
    Sender& sender = senders[number];
    while (Ptr<Packet> packet = socket->Recv())
    {
        sender.arrived += packet->GetSize();
    }
    if (sender.arrived < BLOCK)
    {
        return;
    }
    sender.arrived = 0;
    if (--waiting > 0)
    {
        return;
    }
    if (++round < rounds)
    {
        Ask();
        return;
    }
    ended = Simulator::Now();
    Simulator::Stop();
}

void
Watch(Ptr<Socket> socket)
{
    socket->TraceConnectWithoutContext(
        "CongState",
        Callback<void, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t>(
            [](TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
                timeouts += now == TcpSocketState::CA_LOSS;
            }));
}

// A connection has reached its server: the port of the reader tells which it is.
void
Accepted(Ptr<Socket> socket, const Address& from)
{
    uint32_t number = InetSocketAddress::ConvertFrom(from).GetPort() - 1000;
    senders[number].server = socket;
    socket->SetRecvCallback(
        Callback<void, Ptr<Socket>>([number](Ptr<Socket> s) { RequestArrived(number, s); }));
    socket->SetSendCallback(
        Callback<void, Ptr<Socket>, uint32_t>([number](Ptr<Socket>, uint32_t) { Write(number); }));
    Watch(socket);
    if (++open == senders.size())
    {
        Simulator::Schedule(MilliSeconds(50), &Ask);
    }
}

void
Dropped(Ptr<const Packet>)
{
    drops++;
}
} // namespace

int
main(int argc, char** argv)
{
    uint32_t count = 4;
    bool sack = true;
    double minRtoMs = 200;
    uint32_t ackEvery = 2;
    uint32_t run = 1;
    CommandLine line(__FILE__);
    line.AddValue("senders", "number of senders", count);
    line.AddValue("rounds", "number of rounds", rounds);
    line.AddValue("sack", "selective acknowledgements", sack);
    line.AddValue("minrto", "minimum timeout in milliseconds", minRtoMs);
    line.AddValue("ackevery", "packets after which an ACK is sent", ackEvery);
    line.AddValue("run", "number of the run", run);
    line.Parse(argc, argv);
    RngSeedManager::SetRun(run);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpLinuxReno")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(ackEvery));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(15));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MicroSeconds(minRtoMs * 1000)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(4)));

    senders.resize(count);
    jitter = CreateObject<UniformRandomVariable>();
    NodeContainer nodes; // the switch, the reader, the senders
    nodes.Create(2 + count);
    InternetStackHelper().Install(nodes);
    TrafficControlHelper none;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> reached(nodes.GetN());
    for (uint32_t host = 1; host < nodes.GetN(); host++)
    {
        PointToPointHelper cable;
        cable.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(1e8 * PPP))));
        cable.SetChannelAttribute("Delay", TimeValue(MicroSeconds(250)));
        cable.SetQueue("ns3::DropTailQueue<Packet>",
                       "MaxSize",
                       StringValue(host == 1 ? "43p" : "10000p"));
        NetDeviceContainer pair = cable.Install(nodes.Get(0), nodes.Get(host));
        reached[host] = addresses.Assign(pair).GetAddress(1);
        addresses.NewNetwork();
        // An address gives a device a discipline: FqCoDel. The port itself is what is measured.
        none.Uninstall(pair);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    nodes.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        MakeCallback(&Dropped));

    for (uint32_t number = 0; number < count; number++)
    {
        Ptr<Node> host = nodes.Get(2 + number);
        Ptr<Socket> listener = Socket::CreateSocket(host, TcpSocketFactory::GetTypeId());
        listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), 9));
        listener->Listen();
        listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                    MakeCallback(&Accepted));
        Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(1), TcpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), 1000 + number));
        socket->SetRecvCallback(
            Callback<void, Ptr<Socket>>([number](Ptr<Socket> s) { BlockArrived(number, s); }));
        senders[number].reader = socket;
        Address server = InetSocketAddress(reached[2 + number], 9);
        Simulator::Schedule(MilliSeconds(1) + MicroSeconds(jitter->GetInteger(0, 10000)),
                            [socket, server] { socket->Connect(server); });
    }
    Simulator::Stop(Seconds(600));
    Simulator::Run();
    double bits = 8.0 * BLOCK * count * rounds;
    std::printf("%.1f,%lu,%lu\n", bits / (ended - begun).GetSeconds(), timeouts, drops);
    Simulator::Destroy();
    return 0;
}
