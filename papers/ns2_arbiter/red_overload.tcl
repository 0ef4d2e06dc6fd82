# ECN-capable packets of 1000 B at 1.05 times the rate of a RED queue, whatever becomes of them: one
# TCP sender whose whole window waits at the link before, and whose receiver never answers.
# usage: ns red_overload.tcl use_mark_p mark_p wait TRACE; awk -f red_overload.awk TRACE
foreach {ump mp w} $argv break
remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
foreach {k v} [list bytes_ false queue_in_bytes_ false mean_pktsize_ 1000 setbit_ true gentle_ true \
    q_weight_ 0.002 thresh_ 20 maxthresh_ 60 linterm_ 5 wait_ $w use_mark_p_ $ump mark_p_ $mp] {
    Queue/RED set $k $v
}
set n 400000
set a [$ns node]; set b [$ns node]; set c [$ns node]
$ns simplex-link $a $b 8.4Mb 1ms DropTail
$ns simplex-link $b $c 8Mb 1ms RED
$ns simplex-link $c $b 8Mb 1ms DropTail
$ns simplex-link $b $a 8Mb 1ms DropTail
$ns queue-limit $a $b [expr $n + 10]
$ns queue-limit $b $c 1000
Agent/TCP set window_ [expr $n + 10]
Agent/TCP set windowInit_ $n
Agent/TCP set rtxcur_init_ 100000
Agent/TCP set maxrto_ 100000
Agent/TCP set packetSize_ 960
Agent/TCP set ecn_ 1
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
set u [new Agent/TCP]
set s [new Agent/LossMonitor]
$ns attach-agent $a $u; $ns attach-agent $c $s
$ns connect $u $s
set m [$ns monitor-queue $b $c ""]
set f [open [lindex $argv 3] w]
$ns trace-queue $b $c $f
$ns at 0 "$u advance $n"
$ns at 370 {puts "sent [$u set ndatapack_] arr [$m set parrivals_] drops [$m set pdrops_]"; catch {puts "marks [$m set pmarks_]"}; $ns flush-trace; close $f; exit 0}
$ns run
