/*
 * A switch port in user space between two network namespaces, for marking and AQM that the kernel
 * lacks.
 *
 *   switch SENDERS_NAMESPACE READER_NAMESPACE key=value ...
 *
 * It makes a TUN device in each namespace ("port"), prints "ready", and carries packets until it
 * is told to end by SIGTERM. Packets to the reader wait in one queue in front of a link of
 * `rate_mbps` (IP bytes only) and then take `forward_us`; packets to the senders take `back_us`.
 * All decisions are taken in virtual time: a packet comes when it is read, a link is free when the
 * packet before has passed it, whatever the processor did meanwhile. What is written later than its
 * virtual time is counted in a histogram, which is printed at the end as JSON.
 *
 * It polls without sleeping and wants a core for itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int64_t ns_t;

enum { SLOTS = 1 << 15, LARGEST = 1536, BUCKET_NS = 10000, BUCKETS = 51, BATCH = 16 };

struct packet {
    ns_t came, due;
    int bytes;
    unsigned char data[LARGEST];
};

/* A ring of packets in order of time. */
struct line {
    struct packet *at[SLOTS];
    unsigned head, tail;
};

static double rate_mbps = 1000, forward_us = 500, back_us = 500, target_us = 500,
              interval_us = 10000;
static int limit_packets = 100, mark_from = 0, codel = 0;

static struct line waiting, to_reader, to_senders, spare;
static struct packet *sending;
static ns_t sent_at;

static unsigned long came, dropped, marked, left_early, came_back, late[BUCKETS], loops, slow_loops;
/* Gaps between packets of more than 1,000 bytes that are shorter than the link needs for that. */
static unsigned long quick;
static ns_t quick_ns;
static ns_t latest, slowest_loop;
static volatile sig_atomic_t ending;

static void on_signal(int number)
{
    (void)number;
    ending = 1;
}

static ns_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static unsigned length(const struct line *l)
{
    return l->tail - l->head;
}

static void put(struct line *l, struct packet *p)
{
    if (length(l) == SLOTS) {
        fprintf(stderr, "switch: more than %d packets under way\n", SLOTS);
        exit(1);
    }
    l->at[l->tail++ % SLOTS] = p;
}

static struct packet *take(struct line *l)
{
    return length(l) ? l->at[l->head++ % SLOTS] : NULL;
}

static int understands_marks(const struct packet *p)
{
    return (p->data[1] & 3) != 0;
}

/* Set "congestion experienced" and mend the checksum of the header (RFC 1624, equation 3). */
static void mark(struct packet *p)
{
    unsigned before = (unsigned)p->data[0] << 8 | p->data[1];
    p->data[1] |= 3;
    unsigned after = (unsigned)p->data[0] << 8 | p->data[1];
    unsigned sum = (unsigned)p->data[10] << 8 | p->data[11];
    sum = (~sum & 0xffff) + (~before & 0xffff) + after;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    p->data[10] = (unsigned char)(sum >> 8);
    p->data[11] = (unsigned char)sum;
    marked++;
}

/* CoDel, RFC 8289, section 5. */
static ns_t above_since, next_drop;
static unsigned drops_of_phase, drops_before;
static int dropping;

static struct packet *head_of_queue(ns_t now, int *may_drop)
{
    struct packet *p = take(&waiting);
    *may_drop = 0;
    if (!p || now - p->came < (ns_t)(target_us * 1e3) || length(&waiting) <= 1) {
        above_since = 0;
        return p;
    }
    if (!above_since)
        above_since = now + (ns_t)(interval_us * 1e3);
    else if (now >= above_since)
        *may_drop = 1;
    return p;
}

static ns_t after(ns_t begin)
{
    return begin + (ns_t)(interval_us * 1e3 / sqrt((double)drops_of_phase));
}

static struct packet *dequeue(ns_t now)
{
    int may_drop;
    if (!codel)
        return take(&waiting);
    struct packet *p = head_of_queue(now, &may_drop);
    if (dropping) {
        dropping = may_drop;
        while (dropping && now >= next_drop) {
            drops_of_phase++;
            left_early++;
            if (understands_marks(p)) {
                mark(p);
                next_drop = after(next_drop);
                return p;
            }
            put(&spare, p);
            p = head_of_queue(now, &may_drop);
            dropping = may_drop;
            if (dropping)
                next_drop = after(next_drop);
        }
    } else if (may_drop) {
        left_early++;
        if (understands_marks(p))
            mark(p);
        else {
            put(&spare, p);
            p = head_of_queue(now, &may_drop);
        }
        dropping = 1;
        unsigned more = drops_of_phase - drops_before;
        int again = more > 1 && now - next_drop < (ns_t)(16e3 * interval_us);
        drops_of_phase = again ? more : 1;
        next_drop = after(now);
        drops_before = drops_of_phase;
    }
    return p;
}

static void begin_sending(ns_t now)
{
    sending = dequeue(now);
    if (sending)
        sent_at = now + (ns_t)(sending->bytes * 8e3 / rate_mbps + 0.5);
}

/* Let the link send until this time. */
static void advance(ns_t now)
{
    while (sending && sent_at <= now) {
        sending->due = sent_at + (ns_t)(forward_us * 1e3);
        put(&to_reader, sending);
        begin_sending(sent_at);
    }
}

static void arrive(struct packet *p, ns_t now)
{
    static ns_t before;
    ns_t gap = now - before;
    if (came++ && p->bytes > 1000 && gap * rate_mbps < 1000 * 8e3) {
        quick++;
        quick_ns += gap;
    }
    before = now;
    p->came = now;
    if ((int)length(&waiting) >= limit_packets) {
        dropped++;
        put(&spare, p);
        return;
    }
    if (mark_from && (int)length(&waiting) >= mark_from && understands_marks(p))
        mark(p);
    put(&waiting, p);
    if (!sending)
        begin_sending(now);
}

static void deliver(struct line *l, int device, ns_t now)
{
    while (length(l) && l->at[l->head % SLOTS]->due <= now) {
        struct packet *p = take(l);
        ns_t behind = now_ns() - p->due;
        long bucket = behind / BUCKET_NS;
        late[bucket < BUCKETS - 1 ? bucket : BUCKETS - 1]++;
        latest = behind > latest ? behind : latest;
        if (write(device, p->data, (size_t)p->bytes) < 0 && errno != EIO && errno != EAGAIN)
            perror("switch: write");
        put(&spare, p);
    }
}

/* Read a packet of IPv4 from a device, or nothing. */
static struct packet *receive(int device)
{
    struct packet *p = take(&spare);
    if (!p) {
        fprintf(stderr, "switch: no packet is spare\n");
        exit(1);
    }
    ssize_t n = read(device, p->data, LARGEST);
    if (n < 20 || p->data[0] >> 4 != 4) {
        /* put back in front: this one is warm in the cache */
        spare.at[--spare.head % SLOTS] = p;
        return NULL;
    }
    p->bytes = (int)n;
    return p;
}

static int device_in(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int space = open(path, O_RDONLY);
    if (space < 0 || setns(space, CLONE_NEWNET)) {
        perror(path);
        exit(1);
    }
    close(space);
    struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    snprintf(wanted.ifr_name, sizeof wanted.ifr_name, "port");
    if (device < 0 || ioctl(device, TUNSETIFF, &wanted)) {
        perror("switch: TUN");
        exit(1);
    }
    int room = 1 << 30;
    ioctl(device, TUNSETSNDBUF, &room);
    return device;
}

static void set(const char *word)
{
    char key[32];
    double value;
    if (sscanf(word, "%31[^=]=%lf", key, &value) != 2) {
        fprintf(stderr, "switch: %s is no key=value\n", word);
        exit(2);
    }
    if (!strcmp(key, "rate_mbps"))
        rate_mbps = value;
    else if (!strcmp(key, "forward_us"))
        forward_us = value;
    else if (!strcmp(key, "back_us"))
        back_us = value;
    else if (!strcmp(key, "limit"))
        limit_packets = (int)value;
    else if (!strcmp(key, "mark_from"))
        mark_from = (int)value;
    else if (!strcmp(key, "codel"))
        codel = (int)value;
    else if (!strcmp(key, "target_us"))
        target_us = value;
    else if (!strcmp(key, "interval_us"))
        interval_us = value;
    else {
        fprintf(stderr, "switch: %s is not known\n", key);
        exit(2);
    }
}

static void report(void)
{
    unsigned long all = 0, within = 0;
    for (int i = 0; i < BUCKETS; i++) {
        all += late[i];
        within += i < 50000 / BUCKET_NS ? late[i] : 0;
    }
    printf("{\"rate_mbps\": %g, \"came\": %lu, \"came_back\": %lu, \"dropped\": %lu, "
           "\"codel_acted\": %lu, \"marked\": %lu, \"within_50_us\": %.6f, \"latest_us\": %.1f, "
           "\"quick_gaps\": %lu, \"quick_gap_us\": %.3f, \"loops\": %lu, \"loops_above_50_us\": %lu, \"slowest_loop_us\": %.1f, "
           "\"late_by_10_us\": [",
           rate_mbps, came, came_back, dropped, left_early, marked,
           all ? (double)within / (double)all : 1.0, (double)latest / 1e3, quick,
           quick ? (double)quick_ns / 1e3 / (double)quick : 0.0, loops, slow_loops,
           (double)slowest_loop / 1e3);
    for (int i = 0; i < BUCKETS; i++)
        printf("%s%lu", i ? ", " : "", late[i]);
    printf("]}\n");
}

int main(int count, char **words)
{
    if (count < 3) {
        fprintf(stderr, "switch: needs two namespaces\n");
        return 2;
    }
    for (int i = 3; i < count; i++)
        set(words[i]);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    int senders = device_in(words[1]), reader = device_in(words[2]);
    struct packet *all = calloc(SLOTS - 1, sizeof *all);
    for (int i = 0; i < SLOTS - 1; i++)
        put(&spare, all + i);
    memset(all, 0, (SLOTS - 1) * sizeof *all);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    fprintf(stderr, "ready\n");
    for (ns_t before = now_ns(); !ending;) {
        ns_t now = now_ns(), gap = now - before;
        struct packet *p;
        before = now;
        loops++;
        slow_loops += gap > 50000;
        slowest_loop = gap > slowest_loop ? gap : slowest_loop;
        for (int i = 0; i < BATCH && (p = receive(senders)); i++) {
            ns_t at = now_ns();
            advance(at);
            arrive(p, at);
        }
        for (int i = 0; i < BATCH && (p = receive(reader)); i++) {
            came_back++;
            p->due = now_ns() + (ns_t)(back_us * 1e3);
            put(&to_senders, p);
        }
        now = now_ns();
        advance(now);
        deliver(&to_reader, reader, now);
        deliver(&to_senders, senders, now);
    }
    report();
    return 0;
}
