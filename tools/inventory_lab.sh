#!/bin/bash
# Makes the outputs in tests/data/inventories/lab: LLDP neighbours, links and OSPF routes of two leaves,
# two spines and four hosts in network namespaces. Needs root, iproute2, lldpd and FRR; ROOT is the
# folder in which lldpd and FRR are unpacked, if they are not installed. Users and /run are its own:
#     unshare -m --pid --fork --mount-proc tools/inventory_lab.sh OUT
set -u
root=${ROOT:-}
out=$(realpath -m "${1:?name the folder of the outputs}")
mkdir -p "$out"
if [ "$$" != 1 ]; then
    echo "run it in namespaces of its own: unshare -m --pid --fork --mount-proc $0 $1" >&2
    exit 2
fi
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
mount --make-rprivate /
cp /etc/passwd "$scratch/passwd"
cp /etc/group "$scratch/group"
printf 'frr:x:900:900::/:/bin/false\n_lldpd:x:901:901::/run/lldpd:/bin/false\n' >> "$scratch/passwd"
printf 'frr:x:900:\nfrrvty:x:902:root,frr\n_lldpd:x:901:\n' >> "$scratch/group"
mount --bind "$scratch/passwd" /etc/passwd
mount --bind "$scratch/group" /etc/group
mount -t tmpfs tmpfs /run
mkdir -p /run/lldpd /run/frr /run/netns
chown _lldpd:_lldpd /run/lldpd
libraries=$root/usr/lib/x86_64-linux-gnu/frr:$root/usr/lib/x86_64-linux-gnu

switches="leaf0 leaf1 spine0 spine1"
nodes="$switches h0 h1 h2 h3"

# Runs a program in the namespace of a node, with the name of the node as the name of the machine.
on() {
    local node=$1
    shift
    ip netns exec "$node" unshare -u env LD_LIBRARY_PATH="$libraries" \
        bash -c 'hostname "$0"; exec "$@"' "$node" "$@"
}

# Joins two nodes: NODE PORT ADDRESS NODE PORT ADDRESS.
cable() {
    ip link add name "$2" netns "$1" type veth peer name "$5" netns "$4"
    ip -n "$1" addr add "$3" dev "$2"
    ip -n "$4" addr add "$6" dev "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}

for node in $nodes; do
    ip netns add "$node"
    ip -n "$node" link set lo up
done
number=0
for leaf in 0 1; do
    for spine in 0 1; do
        cable leaf$leaf up$spine 10.1.$number.0/31 spine$spine down$leaf 10.1.$number.1/31
        number=$((number + 1))
    done
done
for host in 0 1 2 3; do
    cable h$host eth0 10.2.$host.2/24 leaf$((host / 2)) srv$host 10.2.$host.1/24
    ip -n h$host route add default via 10.2.$host.1
done

for switch in $switches; do
    ip netns exec "$switch" sysctl -qw net.ipv4.ip_forward=1
    folder=/run/frr/$switch
    mkdir -m 777 "$folder"
    echo "hostname $switch" > "$folder/zebra.conf"
    {
        printf 'hostname %s\nrouter ospf\n network 10.0.0.0/8 area 0\n maximum-paths 8\n' "$switch"
        for port in up0 up1 down0 down1; do
            printf 'interface %s\n ip ospf network point-to-point\n' "$port"
            printf ' ip ospf hello-interval 1\n ip ospf dead-interval 4\n'
        done
    } > "$folder/ospfd.conf"
    for daemon in zebra ospfd; do
        on "$switch" "$root/usr/lib/frr/$daemon" -d -u root -g root -A 127.0.0.1 \
            -z "$folder/socket" -i "$folder/$daemon.pid" -f "$folder/$daemon.conf" \
            --vty_socket "$folder"
    done
done
for node in $nodes; do
    on "$node" "$root/usr/sbin/lldpd" -d -u "/run/lldpd/$node.sock" -L "$root/usr/sbin/lldpcli" \
        > "/run/lldpd/$node.log" 2>&1 &
done
sleep 3
for node in $nodes; do
    on "$node" "$root/usr/sbin/lldpcli" -u "/run/lldpd/$node.sock" \
        configure lldp tx-interval 1 > /run/lldpd/configured 2>&1
done
sleep 25

for node in $nodes; do
    ask=("$root/usr/sbin/lldpcli" -u "/run/lldpd/$node.sock")
    on "$node" "${ask[@]}" -f json show neighbors details > "$out/$node.lldp.json"
    on "$node" "${ask[@]}" -f json show chassis > "$out/$node.chassis.json"
    ip -n "$node" -j link > "$out/$node.link.json"
done
on leaf0 "$root/usr/sbin/lldpcli" -u /run/lldpd/leaf0.sock \
    -f json0 show neighbors details > "$out/leaf0.json0"
for switch in $switches; do
    python3 "$here/ask_frr.py" "/run/frr/$switch/zebra.vty" "show ip route json" \
        > "$out/$switch.routes.json"
done
{
    echo host,address
    for host in 0 1 2 3; do echo "h$host,10.2.$host.2"; done
} > "$out/hosts.csv"
rm -r "$scratch"
