/* A COMMIT whose answer never comes: a proxy cuts the connection before the
 * COMMIT reaches the server, or after the server has done it. */
#include "mysql_support.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

enum cut { CUT_BEFORE, CUT_AFTER };

struct proxy {
    int listener;
    unsigned port;
    struct sockaddr_in server;
    enum cut cut;
    bool done; /* the cut has happened */
    pthread_t thread;
};

/* A COM_QUERY packet of this text lies in the bytes. */
static bool holds_query(const char *bytes, size_t size, const char *text)
{
    char wanted[32];
    int len = snprintf(wanted, sizeof(wanted), "\x03%s", text);

    return memmem(bytes, size, wanted, (size_t)len) != NULL;
}

static bool pass_on(int to, const char *bytes, ssize_t size)
{
    return size > 0 && send(to, bytes, (size_t)size, MSG_NOSIGNAL) == size;
}

/* Both directions until one ends, or until the cut. */
static void relay(struct proxy *p, int client, int server)
{
    struct pollfd fds[] = {{.fd = client, .events = POLLIN},
                           {.fd = server, .events = POLLIN}};
    static char bytes[1 << 16];
    bool committed = false;

    while (poll(fds, 2, -1) > 0) {
        if (fds[0].revents != 0) {
            ssize_t size = recv(client, bytes, sizeof(bytes), 0);
            bool commit = size > 0 &&
                          holds_query(bytes, (size_t)size, "COMMIT");

            if (!p->done && commit) {
                committed = true;
                if (p->cut == CUT_BEFORE)
                    break;
            }
            if (!pass_on(server, bytes, size))
                return;
        }
        if (fds[1].revents != 0) {
            ssize_t size = recv(server, bytes, sizeof(bytes), 0);

            if (committed) /* the answer to COMMIT: it stays here */
                break;
            if (!pass_on(client, bytes, size))
                return;
        }
    }
    p->done = true;
}

static void *serve(void *arg)
{
    struct proxy *p = arg;
    int client;

    while ((client = accept(p->listener, NULL, NULL)) >= 0) {
        int server = socket(AF_INET, SOCK_STREAM, 0);

        if (connect(server, (struct sockaddr *)&p->server, sizeof(p->server)) ==
            0)
            relay(p, client, server);
        close(server);
        close(client);
    }
    return NULL;
}

static void start_proxy(struct fixture *f, struct proxy *p, enum cut cut)
{
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(own);
    unsigned port = f->server.port != 0 ? f->server.port : 3306;

    *p = (struct proxy){.cut = cut};
    p->server = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&own, sizeof(own)),
                     0);
    assert_int_equal(listen(p->listener, 4), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&own, &size),
                     0);
    p->port = ntohs(own.sin_port);
    assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
}

static void stop_proxy(struct proxy *p)
{
    (void)shutdown(p->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    close(p->listener);
}

static void commit_and_cut(struct fixture *f, enum cut cut, long long rows)
{
    struct proxy proxy;
    char url[1024];
    struct db *db;
    struct db_sql sql = sql_of("INSERT INTO t VALUES (?1)");

    raw_run(f, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE = InnoDB");
    start_proxy(f, &proxy, cut);
    url_of(f, NULL, f->name, proxy.port, url, sizeof(url));
    db = open_url(f, url);
    ok(f, db_begin(db, &f->diag));
    for (int i = 0; i < 3; i++) {
        struct db_value param = db_integer(i);

        ok(f, db_queue(db, &sql, &param, 1, 1, i, &f->diag));
    }
    assert_int_equal(db_commit(db, NULL, &f->diag), STATUS_LOST);
    assert_true(proxy.done);
    assert_false(db_in_transaction(db));
    ok(f, db_reopen(db, &f->diag));
    /* the outcome is read back, as the host does it */
    for (int64_t end = clock_monotonic() + 20 * CLOCK_SECOND;
         number_from(f, db, "SELECT count(*) FROM t") != rows;)
        assert_true(clock_monotonic() < end);
    ok(f, try_on(f, db, "INSERT INTO t VALUES (77)"));
    db_close(db);
    stop_proxy(&proxy);
    assert_int_equal(raw_number(f, "SELECT count(*) FROM t"), rows + 1);
}

static void
a_commit_that_never_arrived_is_lost_and_nothing_is_kept(void **state)
{
    commit_and_cut(begin_test(state), CUT_BEFORE, 0);
}

static void a_commit_whose_answer_is_lost_is_lost_and_all_is_kept(void **state)
{
    commit_and_cut(begin_test(state), CUT_AFTER, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(a_commit_that_never_arrived_is_lost_and_nothing_is_kept),
        with_server(a_commit_whose_answer_is_lost_is_lost_and_all_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
