// Scenarios S1 (leaf-spine) and S2 (incast) in ns-3:
//
//   ns3_s1_s2 --fs=1000000 --count=0          S1 with flows of 1 MB
//   ns3_s1_s2 --scen=s2 --minrto=0.2          S2
//
// --count=1 counts packet-hops by trace callbacks, which takes time, and prints "hops=N". The
// simulating part is timed by itself: "run_user". docs/internals/speed.md has the commands to build.
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/applications-module.h"
#include <sys/resource.h>
#include <unistd.h>
#include <chrono>
#include <algorithm>
#include <iostream>
using namespace ns3;

#ifdef NS344
#define CBARG(T) const T&
#else
#define CBARG(T) T
#endif
static const uint32_t HBASE = (10u << 24);
static inline uint32_t mix(uint32_t x){ x^=x>>16; x*=0x85ebca6b; x^=x>>13; x*=0xc2b2ae35; x^=x>>16; return x; }
static inline uint32_t hidx(Ipv4Address a){ return (a.Get()-HBASE)>>2; }

// Per-flow (hash of src,dst host) ECMP; O(1) lookup. kind: 0 host, 1 leaf, 2 spine, 3 star switch
class FastRouting : public Ipv4RoutingProtocol {
public:
  static TypeId GetTypeId(){ static TypeId tid = TypeId("ns3::FastRouting").SetParent<Ipv4RoutingProtocol>().SetGroupName("Internet"); return tid; }
  int kind=0; uint32_t id=0, hpl=1, nsp=1; Ipv4Address self;
  std::vector<Ptr<Ipv4Route>> rt; // per interface (index iface-1)
  Ptr<Ipv4> ip;
  Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, Socket::SocketErrno& e) override { e=Socket::ERROR_NOTERROR; return rt[0]; }
  bool RouteInput(Ptr<const Packet> p, const Ipv4Header& h, Ptr<const NetDevice> idev, CBARG(UnicastForwardCallback) ucb, CBARG(MulticastForwardCallback), CBARG(LocalDeliverCallback) lcb, CBARG(ErrorCallback)) override {
    if(kind==0){ lcb(p,h,1); return true; }
    uint32_t d=hidx(h.GetDestination()); uint32_t o;
    if(kind==1){ if(d/hpl==id) o=d%hpl; else o=hpl+mix(hidx(h.GetSource())*1024+d)%nsp; }
    else if(kind==2) o=d/hpl; else o=d;
    ucb(rt[o],p,h); return true;
  }
  void NotifyInterfaceUp(uint32_t) override {}
  void NotifyInterfaceDown(uint32_t) override {}
  void NotifyAddAddress(uint32_t,Ipv4InterfaceAddress) override {}
  void NotifyRemoveAddress(uint32_t,Ipv4InterfaceAddress) override {}
  void SetIpv4(Ptr<Ipv4> i) override { ip=i; }
  void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}
};
class FastHelper : public Ipv4RoutingHelper {
public:
  FastHelper* Copy() const override { return new FastHelper(*this); }
  Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override { return CreateObject<FastRouting>(); }
};
static uint64_t g_tx=0, g_drop=0;
static void TxCb(Ptr<const Packet>){ g_tx++; }
static void DropCb(Ptr<const Packet>){ g_drop++; }
static bool g_count=true;
static void AddIf(Ptr<NetDevice> d, Ipv4Address a){
  Ptr<Node> n=d->GetNode(); Ptr<Ipv4> ip=n->GetObject<Ipv4>();
  uint32_t i=ip->AddInterface(d); ip->AddAddress(i,Ipv4InterfaceAddress(a,Ipv4Mask("255.255.255.252"))); ip->SetMetric(i,1); ip->SetUp(i);
  Ptr<FastRouting> r=DynamicCast<FastRouting>(ip->GetRoutingProtocol());
  Ptr<Ipv4Route> rr=Create<Ipv4Route>(); rr->SetSource(a); rr->SetGateway(Ipv4Address::GetAny()); rr->SetOutputDevice(d); rr->SetDestination(Ipv4Address::GetAny());
  r->rt.push_back(rr); r->self=a;
  if(g_count){ Ptr<PointToPointNetDevice> p=DynamicCast<PointToPointNetDevice>(d);
    p->TraceConnectWithoutContext("PhyTxBegin",MakeCallback(&TxCb)); }
  DynamicCast<PointToPointNetDevice>(d)->GetQueue()->TraceConnectWithoutContext("Drop",MakeCallback(&DropCb));
}
static void SetR(Ptr<Node> n,int kind,uint32_t id,uint32_t hpl,uint32_t nsp){
  Ptr<FastRouting> r=DynamicCast<FastRouting>(n->GetObject<Ipv4>()->GetRoutingProtocol()); r->kind=kind; r->id=id; r->hpl=hpl; r->nsp=nsp; }

// ---- S1 flow bookkeeping
static uint64_t g_fs=4000000; static uint32_t g_done=0,g_nflows=0;
struct Flow{ double t0=0,t1=0; uint64_t rx=0; };
static std::vector<Flow> F;
static void RxCb(uint32_t i, Ptr<const Packet> p, const Address&){
  Flow&f=F[i]; f.rx+=p->GetSize(); if(f.rx>=g_fs && f.t1==0){ f.t1=Simulator::Now().GetSeconds(); if(++g_done==g_nflows) Simulator::Stop(); } }

// ---- S2
struct Incast {
  uint32_t N, rounds, round=0, left=0; uint64_t block; std::vector<Ptr<Socket>> snd; std::vector<uint64_t> got; double t0=0; std::vector<double> rt; uint32_t acc=0;
  void Start(){ t0=Simulator::Now().GetSeconds(); Round(); }
  void Round(){ left=N; for(uint32_t i=0;i<N;i++){ got[i]=0; int r=snd[i]->Send(Create<Packet>(block)); NS_ABORT_MSG_IF(r!=(int)block,"short send "<<r); } }
  void Got(uint32_t i,uint32_t n){ uint64_t b=got[i]; got[i]+=n; if(b<block && got[i]>=block){ if(--left==0){ rt.push_back(Simulator::Now().GetSeconds()); if(++round==rounds) Simulator::Stop(); else Round(); } } }
  void Recv(Ptr<Socket> s){ Ptr<Packet> p; Address from; while((p=s->Recv())){ if(!p->GetSize()) break; s->GetPeerName(from); Got(hidx(InetSocketAddress::ConvertFrom(from).GetIpv4()),p->GetSize()); } }
  void Accept(Ptr<Socket> s,const Address&){ s->SetRecvCallback(MakeCallback(&Incast::Recv,this)); }
};

int main(int argc,char**argv){
  std::string scen="s1", sched="ns3::MapScheduler", tcp="ns3::TcpNewReno"; uint32_t leaves=4,hpl=40,nsp=2,N=32,rounds=20,delack=1,win=1<<20; uint64_t block=262144; double minrto=0.2; uint32_t q=200; bool cnt=true,sack=true;
  CommandLine cmd; cmd.AddValue("scen","",scen); cmd.AddValue("sched","",sched); cmd.AddValue("leaves","",leaves); cmd.AddValue("hpl","",hpl); cmd.AddValue("spines","",nsp); cmd.AddValue("fs","",g_fs); cmd.AddValue("N","",N); cmd.AddValue("rounds","",rounds); cmd.AddValue("minrto","",minrto); cmd.AddValue("delack","",delack); cmd.AddValue("block","",block); cmd.AddValue("count","",cnt); cmd.AddValue("sack","",sack); cmd.AddValue("win","",win); cmd.AddValue("tcp","",tcp);
  cmd.Parse(argc,argv); g_count=cnt;
  ObjectFactory of; of.SetTypeId(sched); Simulator::SetScheduler(of);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType",TypeIdValue(TypeId::LookupByName(tcp)));
  Config::SetDefault("ns3::TcpSocketBase::Sack",BooleanValue(sack));
  Config::SetDefault("ns3::TcpSocketBase::MinRto",TimeValue(Seconds(minrto)));
  Config::SetDefault("ns3::TcpSocketBase::ClockGranularity",TimeValue(MicroSeconds(10)));
  Config::SetDefault("ns3::RttEstimator::InitialEstimation",TimeValue(MilliSeconds(200)));
  Config::SetDefault("ns3::TcpSocket::ConnTimeout",TimeValue(MilliSeconds(200)));
  Config::SetDefault("ns3::TcpSocket::ConnCount",UintegerValue(100));
  Config::SetDefault("ns3::TcpSocket::DataRetries",UintegerValue(100));
  Config::SetDefault("ns3::TcpSocket::SegmentSize",UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd",UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount",UintegerValue(delack));
  Config::SetDefault("ns3::TcpSocket::SndBufSize",UintegerValue(win));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize",UintegerValue(win));
  InternetStackHelper is; is.SetIpv6StackInstall(false); FastHelper fh; is.SetRoutingHelper(fh);
  Incast ic;
  if(scen=="s1"){
    uint32_t H=leaves*hpl; NodeContainer hosts,lf,sp; hosts.Create(H); lf.Create(leaves); sp.Create(nsp);
    is.Install(hosts); is.Install(lf); is.Install(sp);
    PointToPointHelper a,b; a.DisableFlowControl(); b.DisableFlowControl();
    a.SetDeviceAttribute("DataRate",StringValue("1Gbps")); a.SetChannelAttribute("Delay",StringValue("5us")); a.SetQueue("ns3::DropTailQueue","MaxSize",StringValue(std::to_string(q)+"p"));
    b.SetDeviceAttribute("DataRate",StringValue("10Gbps")); b.SetChannelAttribute("Delay",StringValue("5us")); b.SetQueue("ns3::DropTailQueue","MaxSize",StringValue(std::to_string(q)+"p"));
    for(uint32_t i=0;i<H;i++){ NetDeviceContainer d=a.Install(hosts.Get(i),lf.Get(i/hpl)); AddIf(d.Get(0),Ipv4Address(HBASE+4*i+1)); AddIf(d.Get(1),Ipv4Address(HBASE+4*i+2)); SetR(hosts.Get(i),0,i,hpl,nsp);}
    for(uint32_t l=0;l<leaves;l++){ SetR(lf.Get(l),1,l,hpl,nsp); for(uint32_t s=0;s<nsp;s++){ NetDeviceContainer d=b.Install(lf.Get(l),sp.Get(s)); uint32_t k=H+l*nsp+s; AddIf(d.Get(0),Ipv4Address(HBASE+4*k+1)); AddIf(d.Get(1),Ipv4Address(HBASE+4*k+2)); } }
    for(uint32_t s=0;s<nsp;s++) SetR(sp.Get(s),2,s,hpl,nsp);
    g_nflows=H*8; F.resize(g_nflows); uint32_t x=12345,fi=0;
    for(uint32_t i=0;i<H;i++) for(uint32_t k=1;k<=8;k++,fi++){
      x=x*1664525u+1013904223u; double t=(x>>8)/16777216.0*1e-3; F[fi].t0=t; uint32_t d=(i+k*19)%H; uint16_t port=1000+fi;
      PacketSinkHelper ps("ns3::TcpSocketFactory",InetSocketAddress(Ipv4Address::GetAny(),port)); ApplicationContainer ac=ps.Install(hosts.Get(d)); ac.Start(Seconds(0));
      ac.Get(0)->TraceConnectWithoutContext("Rx",MakeBoundCallback(&RxCb,fi));
      BulkSendHelper bs("ns3::TcpSocketFactory",InetSocketAddress(Ipv4Address(HBASE+4*d+1),port)); bs.SetAttribute("MaxBytes",UintegerValue(g_fs)); bs.SetAttribute("SendSize",UintegerValue(1448)); bs.Install(hosts.Get(i)).Start(Seconds(t)); }
    Simulator::Stop(Seconds(300));
  } else {
    NodeContainer h; h.Create(N+1); NodeContainer sw; sw.Create(1); is.Install(h); is.Install(sw);
    PointToPointHelper a; a.DisableFlowControl(); a.SetDeviceAttribute("DataRate",StringValue("1Gbps")); a.SetChannelAttribute("Delay",StringValue("20us")); a.SetQueue("ns3::DropTailQueue","MaxSize",StringValue("1000p"));
    for(uint32_t i=0;i<=N;i++){ NetDeviceContainer d=a.Install(h.Get(i),sw.Get(0)); AddIf(d.Get(0),Ipv4Address(HBASE+4*i+1)); AddIf(d.Get(1),Ipv4Address(HBASE+4*i+2)); SetR(h.Get(i),0,i,1,1);
      if(i==N) DynamicCast<PointToPointNetDevice>(d.Get(1))->GetQueue()->SetMaxSize(QueueSize("43p")); }
    SetR(sw.Get(0),3,0,1,1);
    ic.N=N; ic.rounds=rounds; ic.block=block; ic.got.resize(N);
    Ptr<Socket> ls=Socket::CreateSocket(h.Get(N),TcpSocketFactory::GetTypeId()); ls->Bind(InetSocketAddress(Ipv4Address::GetAny(),5000)); ls->Listen(); ls->SetAcceptCallback(MakeNullCallback<bool,Ptr<Socket>,const Address&>(),MakeCallback(&Incast::Accept,&ic));
    for(uint32_t i=0;i<N;i++){ Ptr<Socket> s=Socket::CreateSocket(h.Get(i),TcpSocketFactory::GetTypeId()); s->Bind(); s->Connect(InetSocketAddress(Ipv4Address(HBASE+4*N+1),5000)); ic.snd.push_back(s); }
    Simulator::Schedule(MilliSeconds(5),&Incast::Start,&ic);
    Simulator::Stop(Seconds(3000));
  }
  struct rusage r0,r1; getrusage(RUSAGE_SELF,&r0); auto w0=std::chrono::steady_clock::now();
  Simulator::Run();
  getrusage(RUSAGE_SELF,&r1); double w=std::chrono::duration<double>(std::chrono::steady_clock::now()-w0).count();
  auto us=[](rusage&r){return r.ru_utime.tv_sec+r.ru_utime.tv_usec*1e-6;}; auto ss=[](rusage&r){return r.ru_stime.tv_sec+r.ru_stime.tv_usec*1e-6;};
  double u=us(r1)-us(r0), sy=ss(r1)-ss(r0);
  printf("ns3 scen=%s sched=%s setup_user=%.3f run_user=%.3f run_sys=%.3f run_wall=%.3f rss_MB=%.1f events=%lu hops=%lu drops=%lu simtime=%.6f\n",scen.c_str(),sched.c_str(),us(r0),u,sy,w,r1.ru_maxrss/1024.0,(unsigned long)Simulator::GetEventCount(),(unsigned long)g_tx,(unsigned long)g_drop,Simulator::Now().GetSeconds());
  if(g_tx) printf("hops_per_run_user=%.0f hops_per_run_usersys=%.0f events_per_run_user=%.0f\n",g_tx/u,g_tx/(u+sy),Simulator::GetEventCount()/u);
  if(scen=="s1"){ std::vector<double> v; double last=0; for(auto&f:F) if(f.t1>0){ v.push_back(f.t1-f.t0); last=std::max(last,f.t1);} std::sort(v.begin(),v.end()); double m=0; for(double z:v)m+=z; if(v.size()) printf("flows=%zu/%u last=%.6f meanFCT=%.6f p50=%.6f p99=%.6f max=%.6f\n",v.size(),g_nflows,last,m/v.size(),v[v.size()/2],v[size_t(0.99*(v.size()-1))],v.back()); }
  else { double T=ic.rt.empty()?0:ic.rt.back()-ic.t0; printf("incast N=%u rounds=%zu minrto=%g time=%.6f goodput_Mbps=%.3f\n",N,ic.rt.size(),minrto,T,T>0?8.0*block*N*ic.rt.size()/T/1e6:0); }
  fflush(stdout); _exit(0);
}
