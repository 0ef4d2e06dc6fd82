# Scenario S1 in ns-2 (Debian's package ns2): 160 hosts on a leaf-spine of 1 and 10 Gbit/s, eight
# flows from each host, drop-tail of 200 packets, TCP with SACK.
#
#   ns ns2_s1.tcl LEAVES HOSTS_PER_LEAF SPINES FLOW_BYTES COUNT
#   ns ns2_s1.tcl 4 40 2 4000000 0
#
# COUNT 1 counts packet-hops with queue monitors, which takes time, and prints "hops=N". The line
# "setup done" separates building the network from simulating it.
set leaves [lindex $argv 0]; set hpl [lindex $argv 1]; set nsp [lindex $argv 2]; set bytes [lindex $argv 3]; set count [lindex $argv 4]
set H [expr $leaves*$hpl]; set q 200
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
proc mix {x} { set x [expr {($x ^ ($x>>16)) & 0xffffffff}]; set x [expr {($x*0x85ebca6b)&0xffffffff}]; set x [expr {$x ^ ($x>>13)}]; set x [expr {($x*0xc2b2ae35)&0xffffffff}]; return [expr {$x ^ ($x>>16)}] }
$ns rtproto Manual
Agent/TCP set packetSize_ 1448
Agent/TCP set tcpip_base_hdr_size_ 52
Agent/TCP set window_ 724
Agent/TCP set windowInit_ 10
Agent/TCP set minrto_ 0.2
Agent/TCP set rtxcur_init_ 0.2
Agent/TCP set tcpTick_ 0.00001
Agent/TCP set timestamps_ true
Agent/TCP set maxburst_ 0
Agent/TCP set ssthresh_ 0
for {set i 0} {$i<$H} {incr i} { set h($i) [$ns node] }
for {set i 0} {$i<$leaves} {incr i} { set lf($i) [$ns node] }
for {set i 0} {$i<$nsp} {incr i} { set sp($i) [$ns node] }
proc lnk {a b bw} { global ns q; $ns duplex-link $a $b $bw 5us DropTail; $ns queue-limit $a $b $q; $ns queue-limit $b $a $q }
for {set i 0} {$i<$H} {incr i} { lnk $h($i) $lf([expr $i/$hpl]) 1Gb }
for {set l 0} {$l<$leaves} {incr l} { for {set s 0} {$s<$nsp} {incr s} { lnk $lf($l) $sp($s) 10Gb } }
# manual routes: dst-based; leaf picks spine by hash(leaf,dst)
proc route {a d nh} { global ns; [$a get-module Manual] add-route [$d id] [[$ns link $a $nh] head] }
for {set d 0} {$d<$H} {incr d} { set ld [expr $d/$hpl]
  for {set i 0} {$i<$H} {incr i} { if {$i!=$d} { route $h($i) $h($d) $lf([expr $i/$hpl]) } }
  for {set l 0} {$l<$leaves} {incr l} { if {$l==$ld} { route $lf($l) $h($d) $h($d) } else { route $lf($l) $h($d) $sp([expr [mix [expr $l*1024+$d]]%$nsp]) } }
  for {set s 0} {$s<$nsp} {incr s} { route $sp($s) $h($d) $lf($ld) } }
set mons {}
if {$count} { foreach {k l} [array get dummy] {} 
  for {set i 0} {$i<$H} {incr i} { set a $h($i); set b $lf([expr $i/$hpl]); lappend mons [$ns monitor-queue $a $b ""] [$ns monitor-queue $b $a ""] }
  for {set l 0} {$l<$leaves} {incr l} { for {set s 0} {$s<$nsp} {incr s} { lappend mons [$ns monitor-queue $lf($l) $sp($s) ""] [$ns monitor-queue $sp($s) $lf($l) ""] } } }
set x 12345; set fi 0; set done 0; set nf [expr $H*8]; set np [expr ($bytes+1447)/1448]; set fct {}; set last 0
Agent/TCP instproc done {} { global ns done nf fct last t0; set t [$ns now]; lappend fct [expr $t-$t0($self)]; set last $t; incr done; if {$done==$nf} { finish } }
proc finish {} { global ns fct last done nf mons count tcps; set v [lsort -real $fct]; set m 0.0; foreach z $v {set m [expr $m+$z]}; set n [llength $v]
  puts "ns2 flows=$n/$nf last=$last meanFCT=[expr $m/$n] p50=[lindex $v [expr $n/2]] p99=[lindex $v [expr int(0.99*($n-1))]] max=[lindex $v end]"
  set dp 0; foreach t $tcps { incr dp [$t set ndatapack_] }; puts "datapackets_sent=$dp"
  if {$count} { set hp 0; set dr 0; foreach mn $mons { set hp [expr $hp+[$mn set pdepartures_]]; set dr [expr $dr+[$mn set pdrops_]] }; puts "hops=$hp drops=$dr" }
  flush stdout; exit 0 }
set tcps {}
for {set i 0} {$i<$H} {incr i} { for {set k 1} {$k<=8} {incr k} { set x [expr {($x*1664525+1013904223)&0xffffffff}]; set t [expr {($x>>8)/16777216.0*1e-3}]; set d [expr ($i+$k*19)%$H]
  set a [new Agent/TCP/Sack1]; set b [new Agent/TCPSink/Sack1]; $ns attach-agent $h($i) $a; $ns attach-agent $h($d) $b; $ns connect $a $b; $a set fid_ $fi; incr fi; set t0($a) $t; lappend tcps $a; $ns at $t "$a advance $np" } }
$ns at 300 finish
puts "setup done"; flush stdout
$ns run
