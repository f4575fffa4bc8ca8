/* Rewriting the `?` of scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/placeholder.h"

struct rewrite {
    const char *dialect;
    const char *sql;
    const char *result; /* NULL: INVALID */
    size_t count;
};

static const struct rewrite rewrites[] = {
    {"sqlite", "SELECT ?", "SELECT ?1", 1},
    {"postgres", "SELECT ?", "SELECT $1", 1},
    {"mysql", "SELECT ?", "SELECT ?", 1},
    {"sqlite", "", "", 0},
    {"sqlite", "VALUES (?,?, ?)", "VALUES (?1,?2, ?3)", 3},
    {"postgres", "a=? AND b=?", "a=$1 AND b=$2", 2},

    /* a doubled one is a question mark */
    {"postgres", "a ?? ? AND b ??| c", "a ? $1 AND b ?| c", 1},
    {"sqlite", "???", "??1", 1},

    /* strings and names */
    {"sqlite", "'?' || ?", "'?' || ?1", 1},
    {"sqlite", "'it''s ?' || ?", "'it''s ?' || ?1", 1},
    {"sqlite", "'\\' || ?", "'\\' || ?1", 1},
    {"mysql", "'\\' , ?", "'\\' , ?", 1},
    {"mysql", "\"\\\" , ?", "\"\\\" , ?", 1},
    {"postgres", "'\\' || ?", "'\\' || $1", 1},
    {"postgres", "E'\\'?' || ?", "E'\\'?' || $1", 1},
    {"postgres", "e'\\\\' || ?", "e'\\\\' || $1", 1},
    {"postgres", "made'\\' || ?", "made'\\' || $1", 1},
    {"sqlite", "\"a\"\"?\" = ?", "\"a\"\"?\" = ?1", 1},
    {"sqlite", "`a?` = ?", "`a?` = ?1", 1},
    {"mysql", "`a``?` = ?", "`a``?` = ?", 1},
    {"postgres", "`? = ?", "`$1 = $2", 2},
    {"sqlite", "[a?] = ?", "[a?] = ?1", 1},
    {"sqlite", "[a]? = ']'", "[a]?1 = ']'", 1},
    {"postgres", "a[?] = ?", "a[$1] = $2", 2},

    /* comments */
    {"sqlite", "-- ?\n?", "-- ?\n?1", 1},
    {"sqlite", "? -- ?", "?1 -- ?", 1},
    {"sqlite", "/* ? */ ?", "/* ? */ ?1", 1},
    {"sqlite", "/* /* ? */ ? */", "/* /* ? */ ?1 */", 1},
    {"postgres", "/* /* ? */ ? */ ?", "/* /* ? */ ? */ $1", 1},
    {"sqlite", "/*/ ? */ ?", "/*/ ? */ ?1", 1},
    {"mysql", "5--?", "5--?", 1},
    {"mysql", "5 -- ?\n, ?", "5 -- ?\n, ?", 1},
    {"mysql", "# ?\n?", "# ?\n?", 1},
    {"postgres", "a # ?", "a # $1", 1},
    {"sqlite", "1 - -? / *", "1 - -?1 / *", 1},

    /* casts and dollar quotes */
    {"postgres", "?::int", "$1::int", 1},
    {"postgres", "$$ ? $$ || ?", "$$ ? $$ || $1", 1},
    {"postgres", "$a$ ? $$ ? $b$ $a$ ?", "$a$ ? $$ ? $b$ $a$ $1", 1},
    {"postgres", "x$a$ ? y$a$", "x$a$ $1 y$a$", 1},
    {"postgres", "$1a$ ?", "$1a$ $1", 1},
    {"sqlite", "$$ ? $$", "$$ ?1 $$", 1},
    {"sqlite", "SELECT \xc3\xa9?", "SELECT \xc3\xa9?1", 1},

    /* what has no end, or is no plain parameter */
    {"sqlite", "'?", NULL, 0},
    {"sqlite", "'a''", NULL, 0},
    {"sqlite", "\"a", NULL, 0},
    {"sqlite", "`a", NULL, 0},
    {"sqlite", "[a", NULL, 0},
    {"sqlite", "/* a *", NULL, 0},
    {"sqlite", "/*/", NULL, 0},
    {"postgres", "/* /* */", NULL, 0},
    {"postgres", "$a$ $b$", NULL, 0},
    {"mysql", "'a\\''", NULL, 0},
    {"sqlite", "?1", NULL, 0},
    {"postgres", "?a", NULL, 0},
    {"oracle", "?", NULL, 0},
};

static void every_rewrite_is_as_listed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rewrites) / sizeof(rewrites[0]); i++) {
        const struct rewrite *r = &rewrites[i];
        struct buffer out = BUFFER_EMPTY;
        struct diag diag = {0};
        size_t count = 99;
        enum status status = placeholder_rewrite(text_of(r->sql), r->dialect,
                                                 &out, &count, &diag);

        if (r->result == NULL) {
            if (status != STATUS_INVALID)
                fail_msg("%s: not refused: %s", r->dialect, r->sql);
        } else if (status != STATUS_OK || count != r->count ||
                   !text_equal(buffer_text(&out), text_of(r->result))) {
            fail_msg("%s: %s became %.*s (%zu)", r->dialect, r->sql,
                     TEXT_ARGS(buffer_text(&out)), count);
        }
        buffer_free(&out);
    }
}

static void an_error_says_where_the_open_token_began(void **state)
{
    struct buffer out = BUFFER_EMPTY;
    struct diag diag;
    size_t count;

    (void)state;
    assert_int_equal(placeholder_rewrite(text_of("SELECT 'a', 'b"), "sqlite",
                                         &out, &count, &diag),
                     STATUS_INVALID);
    assert_non_null(strstr(diag.message, "a string"));
    assert_non_null(strstr(diag.message, "byte 12"));
    assert_int_equal(placeholder_rewrite(TEXT_LITERAL("a\0?"), "sqlite", &out,
                                         &count, &diag),
                     STATUS_INVALID);
    assert_non_null(strstr(diag.message, "byte 1"));
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rewrite_is_as_listed),
        cmocka_unit_test(an_error_says_where_the_open_token_began),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
