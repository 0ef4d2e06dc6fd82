# Shares of packets marked and dropped after 95 s, from a trace of the RED queue.
$2>95{ if($1=="d")d++; if($1=="-"){g++; if($7~/E/)m++}; fl[$7]++ }
END{printf "offered %d marked %.4f dropped %.4f ", g+d, m/(g+d), d/(g+d); for(k in fl) printf "%s:%d ",k,fl[k]; print ""}
