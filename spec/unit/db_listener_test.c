/* What is heard of the commits of others. */
#include "db_support.h"

#include "base/clock.h"
#include "db/listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#define LONG_US (60 * CLOCK_SECOND)

#define INSERT_ONE                                                             \
    "INSERT INTO t (a, b) SELECT coalesce(max(a), 0) + 1, 7 FROM t"

#define CHANNEL "SELECT 'moontide: \"spec\"'"

static struct listener *begin_to_listen(struct fixture *f, const char *question)
{
    struct listener *listener = NULL;

    ok(f, listener_open(f->url, text_of(question), &listener, &f->diag));
    assert_non_null(listener);
    return listener;
}

static void wait_for(const struct listener *listener, int ms)
{
    struct pollfd fd = {.revents = 0};

    fd.fd = listener_fd(listener, &fd.events);
    (void)poll(&fd, 1, ms);
}

/* How it ends: heard, or failed; it must within a while. */
static enum status hear(struct fixture *f, struct listener *listener)
{
    int64_t until = clock_monotonic() + LONG_US;
    bool heard = false;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && !heard) {
        if (clock_monotonic() > until)
            fail_msg("nothing was heard");
        wait_for(listener, 100);
        status = listener_take(listener, &heard, &f->diag);
    }
    return status;
}

/* Until nothing comes any more. */
static void empty(struct fixture *f, struct listener *listener)
{
    bool heard = true;

    while (heard) {
        wait_for(listener, 50);
        ok(f, listener_take(listener, &heard, &f->diag));
    }
}

static struct listener *listen_to(struct fixture *f)
{
    struct listener *listener = begin_to_listen(f, CHANNEL);
    int64_t until = clock_monotonic() + LONG_US;
    bool heard;

    while (!listener_hears(listener)) {
        assert_true(clock_monotonic() < until);
        wait_for(listener, 100);
        ok(f, listener_take(listener, &heard, &f->diag));
    }
    empty(f, listener);
    return listener;
}

static bool is_quiet(struct fixture *f, struct listener *listener)
{
    bool heard;

    wait_for(listener, 50);
    ok(f, listener_take(listener, &heard, &f->diag));
    return !heard;
}

/* --- every kind ----------------------------------------------------------- */

static void write_one(struct fixture *f, struct db *db)
{
    ok(f, try_run(f, db, INSERT_ONE));
    if (f->schema[0] != '\0')
        ok(f, try_run(f, db, "SELECT pg_notify('moontide: \"spec\"', '')"));
}

static void a_commit_of_another_session_is_heard(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);
    struct listener *listener;

    make_table(f);
    listener = listen_to(f);
    assert_true(is_quiet(f, listener));
    for (int i = 0; i < 3; i++) {
        write_one(f, other);
        assert_int_equal(hear(f, listener), STATUS_OK);
        empty(f, listener);
    }
    listener_close(listener);
    db_close(other);
}

static void what_came_before_the_waiting_ends_it(void **state)
{
    struct fixture *f = *state;
    struct db *other = fixture_connect(f);
    struct listener *listener;

    make_table(f);
    listener = listen_to(f);
    write_one(f, other);
    db_close(other);
    for (int64_t until = clock_monotonic() + LONG_US;;) {
        struct pollfd fd = {.revents = 0};

        fd.fd = listener_fd(listener, &fd.events);
        if (poll(&fd, 1, 100) == 1)
            break;
        assert_true(clock_monotonic() < until);
    }
    assert_int_equal(hear(f, listener), STATUS_OK);
    listener_close(listener);
}

static void closing_nothing_is_allowed(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = begin_to_listen(f, CHANNEL);

    listener_close(listener); /* also before it hears */
    listener_close(NULL);
}

static void a_database_that_tells_nobody_has_no_listener(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = (struct listener *)f;

    ok(f, listener_open(f->url, TEXT_LITERAL(""), &listener, &f->diag));
    assert_null(listener);
}

/* --- files ---------------------------------------------------------------- */

static void a_database_in_memory_has_no_listener(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = (struct listener *)f;

    ok(f,
       listener_open("sqlite::memory:", TEXT_LITERAL(""), &listener, &f->diag));
    assert_null(listener);
}

static void reading_the_file_is_not_heard(void **state)
{
    struct fixture *f = *state;
    struct listener *listener;

    make_table(f);
    listener = listen_to(f);
    for (int i = 0; i < 10; i++)
        assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    assert_true(is_quiet(f, listener));
    listener_close(listener);
}

static void a_log_that_comes_later_is_heard(void **state)
{
    struct fixture *f = *state;
    struct listener *listener;
    char log_path[128];
    struct db *other;

    make_table(f);
    db_close(f->db); /* the last one takes the log away */
    f->db = NULL;
    snprintf(log_path, sizeof(log_path), "%s-wal", f->path);
    assert_int_not_equal(access(log_path, F_OK), 0);
    listener = listen_to(f);
    for (int i = 0; i < 3; i++) {
        other = fixture_connect(f);
        ok(f, try_run(f, other, INSERT_ONE));
        assert_int_equal(hear(f, listener), STATUS_OK);
        empty(f, listener);
        assert_true(is_quiet(f, listener));
        write_one(f, other);
        assert_int_equal(hear(f, listener), STATUS_OK);
        db_close(other);
        empty(f, listener);
    }
    listener_close(listener);
    f->db = fixture_connect(f);
}

static void a_file_that_goes_ends_the_listening(void **state)
{
    struct fixture *f = *state;
    struct listener *listener;
    char away[128];

    make_table(f);
    listener = listen_to(f);
    snprintf(away, sizeof(away), "%s.other", f->path);
    assert_int_equal(rename(f->path, away), 0);
    assert_int_equal(hear(f, listener), STATUS_LOST);
    assert_non_null(strstr(f->diag.message, "moved or deleted"));
    listener_close(listener);
    assert_int_equal(
        listener_open(f->url, TEXT_LITERAL(""), &listener, &f->diag),
        STATUS_UNAVAILABLE);
    assert_non_null(strstr(f->diag.message, "cannot be watched"));
    assert_int_equal(rename(away, f->path), 0);
}

/* --- servers -------------------------------------------------------------- */

static void notify(struct fixture *f, const char *text)
{
    ok(f, try_run(f, f->db, text));
}

static void other_channels_and_what_is_rolled_back_are_not_heard(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = listen_to(f);

    notify(f, "SELECT pg_notify('moontide', '')");
    notify(f, "SELECT pg_notify('moontide: spec', '')");
    begin(f);
    notify(f, "SELECT pg_notify('moontide: \"spec\"', '')");
    db_rollback(f->db);
    assert_true(is_quiet(f, listener));
    begin(f);
    notify(f, "SELECT pg_notify('moontide: \"spec\"', '')");
    assert_true(is_quiet(f, listener));
    commit(f);
    assert_int_equal(hear(f, listener), STATUS_OK);
    listener_close(listener);
}

static void what_was_committed_before_it_hears_is_looked_for(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = begin_to_listen(f, CHANNEL);

    assert_false(listener_hears(listener));
    assert_int_equal(hear(f, listener), STATUS_OK);
    assert_true(listener_hears(listener));
    listener_close(listener);
}

static void a_connection_that_ends_ends_the_listening(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = listen_to(f);

    ok(f, try_run(f, f->db,
                  "SELECT pg_terminate_backend(pid, 10000)"
                  " FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
                  " AND query LIKE '%spec%' AND pid <> pg_backend_pid()"));
    assert_int_equal(hear(f, listener), STATUS_LOST);
    assert_non_null(strstr(f->diag.message, "notifications"));
    listener_close(listener);
}

static void a_channel_that_cannot_be_had_ends_the_listening(void **state)
{
    struct fixture *f = *state;
    static const char *const questions[] = {
        "SELECT 'x' || 'no_such_table'::regclass::oid", "SELECT 'a', 'b'",
        "SELECT 'x' WHERE false", "SELECT"};

    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        struct listener *listener = begin_to_listen(f, questions[i]);

        assert_int_equal(hear(f, listener), STATUS_LOST);
        if (i == 0)
            assert_non_null(strstr(f->diag.message, "no_such_table"));
        listener_close(listener);
    }
}

/* A port where nobody answers, though it takes connections. */
static int silent_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void nobody_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = NULL;
    int64_t start = clock_monotonic();
    bool heard;
    char url[96];
    int port;
    int fd = silent_port(&port);

    snprintf(url, sizeof(url), "postgresql://x@127.0.0.1:%d/x", port);
    ok(f, listener_open(url, text_of(CHANNEL), &listener, &f->diag));
    for (int i = 0; i < 20; i++) {
        wait_for(listener, 1);
        ok(f, listener_take(listener, &heard, &f->diag));
        assert_false(heard);
    }
    assert_false(listener_hears(listener));
    assert_true(clock_monotonic() - start < LONG_US);
    close(fd); /* and now the port refuses */
    assert_int_equal(hear(f, listener), STATUS_UNAVAILABLE);
    listener_close(listener);
}

static void a_wrong_url_is_refused(void **state)
{
    struct fixture *f = *state;
    struct listener *listener = NULL;

    assert_int_equal(listener_open("postgresql://%zz", text_of(CHANNEL),
                                   &listener, &f->diag),
                     STATUS_CONFIG);
    assert_null(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_sqlite(a_commit_of_another_session_is_heard),
        on_postgres(a_commit_of_another_session_is_heard),
        on_sqlite(what_came_before_the_waiting_ends_it),
        on_postgres(what_came_before_the_waiting_ends_it),
        on_sqlite(closing_nothing_is_allowed),
        on_postgres(closing_nothing_is_allowed),
        on_mariadb(a_database_that_tells_nobody_has_no_listener),
        on_sqlite(a_database_in_memory_has_no_listener),
        on_sqlite(reading_the_file_is_not_heard),
        on_sqlite(a_log_that_comes_later_is_heard),
        on_sqlite(a_file_that_goes_ends_the_listening),
        on_postgres(other_channels_and_what_is_rolled_back_are_not_heard),
        on_postgres(what_was_committed_before_it_hears_is_looked_for),
        on_postgres(a_connection_that_ends_ends_the_listening),
        on_postgres(a_channel_that_cannot_be_had_ends_the_listening),
        on_postgres(nobody_is_waited_for),
        on_postgres(a_wrong_url_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
