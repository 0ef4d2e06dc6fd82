/*
 * The traffic of the measurement at 1 Gbit/s: synchronized reads, and flows that send for a time.
 *
 *   traffic serve SENDERS CONGESTION BYTES   answer each request with BYTES, one address per sender
 *   traffic read SENDERS BYTES ROUNDS        ask all senders, wait for all bytes, ask again
 *   traffic send INDEX CONGESTION SECONDS    send to whoever connects; sample the kernel's state
 *   traffic sink INDEX DELAY_S               connect after a delay and read to the end
 *   traffic pairs INDEX COUNT                send two segments every millisecond: an idle round trip
 *
 * Sender number i listens on 10.1.0.(1 + i), port 5000. Results are JSON or CSV on stdout.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST_BYTES = 64, MOST_SENDERS = 128, MOST_ROUNDS = 4096, SAMPLE_US = 5000,
       PART_BYTES = 16384 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Seconds of the clock that all processes of this machine share. */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_s(double seconds)
{
    if (seconds > 0)
        usleep((useconds_t)(seconds * 1e6));
}

static struct sockaddr_in address_of(int sender)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(5000)};
    a.sin_addr.s_addr = htonl((10u << 24) + (1u << 16) + 1u + (unsigned)sender);
    return a;
}

/* A socket on which a sender waits for its reader, with its congestion control. */
static int listening(int sender, const char *congestion)
{
    struct sockaddr_in a = address_of(sender);
    int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)))
        fail("TCP_CONGESTION");
    if (bind(s, (struct sockaddr *)&a, sizeof a) || listen(s, 4))
        fail("listen");
    return s;
}

/* The one connection that such a socket is for. */
static int accepted(int waiting)
{
    int one = 1, s = accept(waiting, NULL, NULL);
    if (s < 0)
        fail("accept");
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    close(waiting);
    return s;
}

/* Connect to a sender; it may not listen yet. */
static int connected(int sender)
{
    struct sockaddr_in a = address_of(sender);
    for (int attempt = 0; attempt < 200; attempt++) {
        int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(s, (struct sockaddr *)&a, sizeof a)) {
            setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            return s;
        }
        close(s);
        usleep(10000);
    }
    fail("connect");
    return -1;
}

static struct tcp_info state_of(int s)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &size))
        fail("TCP_INFO");
    return info;
}

/* What a server knows of one of its senders. */
struct sender {
    int socket, rounds;
    size_t asked;            /* bytes of the present request */
    long left;               /* bytes still to be written in answer */
    double asked_s[MOST_ROUNDS];
};

static struct sender sender_of[MOST_SENDERS];
static int listening_of[MOST_SENDERS];

/*
 * Read what has come of a sender's request; begin the answer when it is whole. False at the end of
 * the connection.
 */
static int hear(struct sender *s, long bytes)
{
    char request[REQUEST_BYTES];
    for (;;) {
        ssize_t n = recv(s->socket, request, sizeof request - s->asked, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return 1;
        if (n <= 0)
            return 0;
        s->asked += (size_t)n;
        if (s->asked == sizeof request) {
            s->asked = 0;
            s->left += bytes;
            if (s->rounds < MOST_ROUNDS)
                s->asked_s[s->rounds++] = now_s();
        }
    }
}

/*
 * Answer all requests. One process does it for all senders in turn, PART_BYTES at a time: it shares
 * a core with the kernel's work, and first windows have to leave soon after each other, as they do
 * from machines of their own.
 */
static void serve(int senders, const char *congestion, long bytes)
{
    static char part[PART_BYTES];
    int polled = epoll_create1(0), open = senders, busy = 0;
    unsigned resent = 0;
    for (int i = 0; i < senders; i++)
        listening_of[i] = listening(i, congestion);
    for (int i = 0; i < senders; i++) {
        struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = (unsigned)i};
        sender_of[i].socket = accepted(listening_of[i]);
        epoll_ctl(polled, EPOLL_CTL_ADD, sender_of[i].socket, &wanted);
    }
    while (open) {
        struct epoll_event ready[MOST_SENDERS];
        int count = epoll_wait(polled, ready, MOST_SENDERS, busy ? 0 : -1);
        for (int k = 0; k < count; k++) {
            struct sender *s = &sender_of[ready[k].data.u32];
            if (s->socket >= 0 && (ready[k].events & EPOLLIN) && !hear(s, bytes)) {
                resent += state_of(s->socket).tcpi_total_retrans;
                close(s->socket);
                s->socket = -1;
                open--;
            }
        }
        /* Goes on while something could be written; room that comes later is an event. */
        busy = 0;
        for (int i = 0; i < senders; i++) {
            struct sender *s = &sender_of[i];
            if (s->socket < 0 || !s->left)
                continue;
            size_t size = s->left < PART_BYTES ? (size_t)s->left : PART_BYTES;
            ssize_t n = send(s->socket, part, size, MSG_DONTWAIT);
            s->left -= n > 0 ? n : 0;
            busy |= n > 0 && s->left;
        }
    }
    double sum = 0, most = 0;
    for (int round = 0; round < sender_of[0].rounds; round++) {
        double first = sender_of[0].asked_s[round], last = first;
        for (int i = 1; i < senders; i++) {
            double at = sender_of[i].asked_s[round];
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
        sum += last - first;
        most = last - first > most ? last - first : most;
    }
    printf("{\"resent\": %u, \"spread_us\": %.1f, \"most_spread_us\": %.1f}\n", resent,
           sender_of[0].rounds ? 1e6 * sum / sender_of[0].rounds : 0.0, 1e6 * most);
}

static void read_rounds(int senders, long bytes, int rounds)
{
    static char request[REQUEST_BYTES], buffer[1 << 20];
    int sockets[MOST_SENDERS], polled = epoll_create1(0);
    long missing[MOST_SENDERS];
    for (int i = 0; i < senders; i++) {
        struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        sockets[i] = connected(i);
        epoll_ctl(polled, EPOLL_CTL_ADD, sockets[i], &wanted);
    }
    sleep_s(0.1);
    double times_s[MOST_ROUNDS], began = now_s();
    for (int round = 0; round < rounds; round++) {
        double asked = now_s();
        int left = senders;
        for (int i = 0; i < senders; i++) {
            missing[i] = bytes;
            if (write(sockets[i], request, sizeof request) != (ssize_t)sizeof request)
                fail("request");
        }
        while (left) {
            struct epoll_event ready[MOST_SENDERS];
            int count = epoll_wait(polled, ready, MOST_SENDERS, 30000);
            if (count <= 0)
                fail("nothing for 30 s");
            for (int k = 0; k < count; k++) {
                unsigned i = ready[k].data.u32;
                ssize_t n = recv(sockets[i], buffer, sizeof buffer, MSG_DONTWAIT);
                if (n < 0 && errno == EAGAIN)
                    continue;
                if (n <= 0)
                    fail("recv");
                missing[i] -= n;
                left -= missing[i] == 0;
            }
        }
        times_s[round] = now_s() - asked;
    }
    double took = now_s() - began;
    printf("{\"goodput_mbps\": %.4f, \"took_s\": %.6f, \"rounds_ms\": [",
           8e-6 * (double)senders * (double)bytes * rounds / took, took);
    for (int round = 0; round < rounds; round++)
        printf("%s%.3f", round ? ", " : "", 1e3 * times_s[round]);
    printf("]}\n");
}

/* Print what the kernel tells of the connection, as a row of CSV. */
static void print_row(double at_s, const struct tcp_info *i)
{
    printf("%.6f,%u,%u,%u,%u,%llu,%u,%u,%u\n", at_s, i->tcpi_snd_cwnd, i->tcpi_snd_ssthresh,
           i->tcpi_ca_state, i->tcpi_total_retrans, (unsigned long long)i->tcpi_bytes_acked,
           i->tcpi_rtt, i->tcpi_min_rtt, i->tcpi_delivered_ce);
}

static void send_for(int index, const char *congestion, double seconds)
{
    static char block[1 << 18];
    int s = accepted(listening(index, congestion)), count = 0, room = (int)(seconds * 1e6 / SAMPLE_US) + 8;
    struct tcp_info *rows = calloc((size_t)room, sizeof *rows);
    double *times = calloc((size_t)room, sizeof *times), began = now_s(), next = 0;
    for (double t = 0; t < seconds; t = now_s() - began) {
        struct pollfd writable = {.fd = s, .events = POLLOUT};
        if (t >= next && count < room) {
            times[count] = t;
            rows[count++] = state_of(s);
            next += SAMPLE_US * 1e-6;
        }
        if (poll(&writable, 1, 1) > 0 && send(s, block, sizeof block, MSG_DONTWAIT) < 0 &&
            errno != EAGAIN)
            fail("send");
    }
    struct tcp_info last = state_of(s);
    double end = now_s() - began;
    printf("time_s,window,threshold,state,resent,acked_bytes,srtt_us,min_rtt_us,marked\n");
    for (int i = 0; i < count; i++)
        print_row(times[i], &rows[i]);
    print_row(end, &last);
    fflush(stdout);
    /* What is still on its way is of no interest: the connection is reset. */
    struct linger reset = {.l_onoff = 1};
    setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(s);
}

static void sink(int index, double delay_s)
{
    static char buffer[1 << 20];
    sleep_s(delay_s);
    int s = connected(index), enough = 1 << 17;
    /* Woken up for 128 KiB, not for every other packet: the core has enough to do. */
    setsockopt(s, SOL_SOCKET, SO_RCVLOWAT, &enough, sizeof enough);
    while (read(s, buffer, sizeof buffer) > 0)
        ;
    close(s);
}

static int by_size(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* The kernel smooths round trips over eight of them; what it says is noted every time. */
static void pairs(int index, int count)
{
    static char two[2 * 1448];
    int s = accepted(listening(index, "reno"));
    unsigned *seen = calloc((size_t)count, sizeof *seen);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        if (write(s, two, sizeof two) != (ssize_t)sizeof two)
            fail("write");
        sleep_s(0.001);
        seen[i] = state_of(s).tcpi_rtt;
        sum += seen[i];
    }
    qsort(seen, (size_t)count, sizeof *seen, by_size);
    printf("{\"srtt_us\": %.1f, \"median_srtt_us\": %u, \"min_rtt_us\": %u}\n", sum / count,
           seen[count / 2], state_of(s).tcpi_min_rtt);
    close(s);
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "serve") && count == 5) {
        serve(atoi(words[2]), words[3], atol(words[4]));
    } else if (!strcmp(what, "read") && count == 5)
        read_rounds(atoi(words[2]), atol(words[3]), atoi(words[4]));
    else if (!strcmp(what, "send") && count == 5)
        send_for(atoi(words[2]), words[3], atof(words[4]));
    else if (!strcmp(what, "sink") && count == 4)
        sink(atoi(words[2]), atof(words[3]));
    else if (!strcmp(what, "pairs") && count == 4)
        pairs(atoi(words[2]), atoi(words[3]));
    else {
        fprintf(stderr, "traffic: see the head of traffic.c for its five commands\n");
        return 2;
    }
    return 0;
}
