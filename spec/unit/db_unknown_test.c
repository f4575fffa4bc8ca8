/*
 * A COMMIT whose answer never comes: a proxy (scripts/lib/proxy.py) cuts the
 * connection before the COMMIT reaches the server, after the server has done
 * it, or behind its answer. Runs in the project's folder.
 */
#include "db_support.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/wait.h>

#define PATIENCE (60 * CLOCK_SECOND)

struct proxied {
    struct fixture f; /* f.db is the connection through the proxy */
    const char *dialect;
    struct buffer direct; /* URL of the test's own database */
    pid_t proxy;
};

/* --- the proxy ----------------------------------------------------------- */

/* The part of the URL that is HOST[:PORT]. */
static struct text host_of(const char *url)
{
    const char *start = strstr(url, "://") + 3;
    size_t len = strcspn(start, "/?");
    const char *at = memrchr(start, '@', len);

    if (at == NULL)
        return (struct text){start, len};
    return (struct text){at + 1, (size_t)(start + len - at - 1)};
}

static int run_proxy(struct proxied *p, const char *cut)
{
    struct text host = host_of(p->direct.data);
    const char *colon = memrchr(host.data, ':', host.len);
    char server[256];
    int ends[2];

    snprintf(server, sizeof(server), "%.*s%s", TEXT_ARGS(host),
             colon != NULL                      ? ""
             : strcmp(p->dialect, "mysql") == 0 ? ":3306"
                                                : ":5432");
    assert_int_equal(pipe(ends), 0);
    p->proxy = fork();
    assert_true(p->proxy >= 0);
    if (p->proxy == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        (void)execlp("python3", "python3", "scripts/lib/proxy.py", p->dialect,
                     server, "--cut", cut, NULL);
        _exit(127);
    }
    close(ends[1]);
    return ends[0];
}

static unsigned read_port(int from)
{
    FILE *file = fdopen(from, "r");
    unsigned port = 0;

    if (fscanf(file, "%u", &port) != 1)
        fail_msg("the proxy did not start: is this the project's folder?");
    (void)fclose(file);
    return port;
}

static void start_proxy(struct proxied *p, const char *cut)
{
    unsigned port = read_port(run_proxy(p, cut));
    const char *url = p->direct.data;
    struct text host = host_of(url);

    snprintf(p->f.url, sizeof(p->f.url), "%.*s127.0.0.1:%u%s",
             (int)(host.data - url), url, port, host.data + host.len);
    p->f.db = fixture_connect(&p->f);
}

/* --- fixture ------------------------------------------------------------- */

static int setup(void **state, const char *dialect, const char *variable)
{
    struct proxied *p = calloc(1, sizeof(*p));

    p->dialect = dialect;
    ok(&p->f, db_scratch(server_url(variable), &p->direct, &p->f.diag));
    server_run(&p->f, p->direct.data, "CREATE TABLE t (a INT PRIMARY KEY)");
    *state = p;
    return 0;
}

static int on_postgres_setup(void **state)
{
    return setup(state, "postgres", "POSTGRES_URL");
}

static int on_mysql_setup(void **state)
{
    return setup(state, "mysql", "MARIADB_URL");
}

static int teardown(void **state)
{
    struct proxied *p = *state;

    db_close(p->f.db);
    if (p->proxy > 0) {
        (void)kill(p->proxy, SIGKILL);
        (void)waitpid(p->proxy, NULL, 0);
    }
    ok(&p->f, db_scratch_drop(p->direct.data, &p->f.diag));
    buffer_free(&p->direct);
    free(p);
    return 0;
}

/* --- rules --------------------------------------------------------------- */

/* Three rows in one transaction, through the proxy. */
static enum status commit_rows(struct proxied *p, const char *cut)
{
    struct db_sql sql = sql_of(strcmp(p->dialect, "mysql") == 0
                                   ? "INSERT INTO t VALUES (?1)"
                                   : "INSERT INTO t VALUES ($1::bigint)");
    struct fixture *f = &p->f;

    start_proxy(p, cut);
    begin(f);
    for (int i = 0; i < 3; i++) {
        struct db_value param = db_integer(i);

        ok(f, db_queue(f->db, &sql, &param, 1, 1, i, &f->diag));
    }
    return db_commit(f->db, NULL, &f->diag);
}

/* The outcome is read back, as the host does it, and the session works. */
static void find(struct proxied *p, int64_t rows)
{
    struct fixture *f = &p->f;

    assert_false(db_in_transaction(f->db));
    ok(f, db_reopen(f->db, &f->diag));
    for (int64_t end = clock_monotonic() + PATIENCE;
         number(f, "SELECT count(*) FROM t") != rows;)
        assert_true(clock_monotonic() < end);
    run(f, "INSERT INTO t VALUES (77)");
    assert_int_equal(number(f, "SELECT count(*) FROM t"), rows + 1);
}

static void
a_commit_that_never_arrived_is_lost_and_nothing_is_kept(void **state)
{
    assert_int_equal(commit_rows(*state, "before"), STATUS_LOST);
    find(*state, 0);
}

static void a_commit_whose_answer_is_lost_is_lost_and_all_is_kept(void **state)
{
    assert_int_equal(commit_rows(*state, "after"), STATUS_LOST);
    find(*state, 3);
}

/* What was answered is known, whatever becomes of the connection. */
static void a_commit_that_was_answered_is_none_that_is_lost(void **state)
{
    struct proxied *p = *state;

    ok(&p->f, commit_rows(p, "behind"));
    assert_int_equal(try_run(&p->f, p->f.db, "INSERT INTO t VALUES (5)"),
                     STATUS_LOST);
    find(p, 3);
}

static void a_commit_that_is_answered_by_rollback_is_an_error(void **state)
{
    struct proxied *p = *state;

    assert_int_equal(commit_rows(p, "rollback"), STATUS_PERMANENT);
    assert_says(&p->f, "rolled the transaction back instead of committing");
    find(p, 0);
}

#define ON(dialect, test)                                                      \
    {                                                                          \
#test " (" #dialect ")", test, on_##dialect##_setup, teardown, NULL    \
    }
#define ON_BOTH(test) ON(postgres, test), ON(mysql, test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(a_commit_that_never_arrived_is_lost_and_nothing_is_kept),
        ON_BOTH(a_commit_whose_answer_is_lost_is_lost_and_all_is_kept),
        ON_BOTH(a_commit_that_was_answered_is_none_that_is_lost),
        ON(postgres, a_commit_that_is_answered_by_rollback_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
