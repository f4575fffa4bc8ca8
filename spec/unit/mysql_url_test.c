/* URLs of MariaDB taken apart, and what is said about bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/mysql_url.h"

static struct mysql_url parsed;
static struct diag diag;

static void good(const char *url)
{
    mysql_url_free(&parsed);
    if (mysql_url_parse(url, &parsed, &diag) != STATUS_OK)
        fail_msg("%s: %s", url, diag.message);
}

static void bad(const char *url, const char *says)
{
    mysql_url_free(&parsed);
    assert_int_equal(mysql_url_parse(url, &parsed, &diag), STATUS_CONFIG);
    if (strstr(diag.message, says) == NULL)
        fail_msg("%s: \"%s\" is not in: %s", url, says, diag.message);
    if (strstr(diag.message, "secret") != NULL)
        fail_msg("%s: the password is shown: %s", url, diag.message);
}

static int free_parsed(void **state)
{
    (void)state;
    mysql_url_free(&parsed);
    parsed = (struct mysql_url){.arena = ARENA_EMPTY};
    return 0;
}

static void both_schemes_are_taken_and_no_other(void **state)
{
    (void)state;
    assert_true(mysql_url_accepts("mysql://h/d"));
    assert_true(mysql_url_accepts("mariadb://h/d"));
    assert_false(mysql_url_accepts("mysql:h/d"));
    assert_false(mysql_url_accepts("postgresql://h/d"));
    assert_false(mysql_url_accepts("sqlite:mysql://h/d"));
}

static void every_part_is_found(void **state)
{
    (void)state;
    good("mariadb://ann:secret@db.example:3307/shop");
    assert_string_equal(parsed.user, "ann");
    assert_string_equal(parsed.password, "secret");
    assert_string_equal(parsed.host, "db.example");
    assert_int_equal(parsed.port, 3307);
    assert_string_equal(parsed.database, "shop");
    assert_int_equal(parsed.tls, MYSQL_TLS_PREFERRED);
    assert_int_equal(parsed.connect_timeout, MYSQL_URL_CONNECT_TIMEOUT);
}

static void parts_may_be_left_out(void **state)
{
    (void)state;
    good("mysql:///shop");
    assert_null(parsed.user);
    assert_null(parsed.password);
    assert_null(parsed.host);
    assert_int_equal(parsed.port, 0);
    good("mysql://db/shop?");
    assert_string_equal(parsed.host, "db");
    good("mysql://ann@/shop");
    assert_string_equal(parsed.user, "ann");
    assert_null(parsed.password);
}

static void parts_are_percent_decoded(void **state)
{
    (void)state;
    good("mysql://a%40b:p%40s%2Fs%3a%25@h/%C3%A4");
    assert_string_equal(parsed.user, "a@b");
    assert_string_equal(parsed.password, "p@s/s:%");
    assert_string_equal(parsed.database, "\xc3\xa4");
}

static void an_at_sign_in_a_password_belongs_to_it(void **state)
{
    (void)state;
    good("mysql://ann:p@ss@host/shop");
    assert_string_equal(parsed.password, "p@ss");
    assert_string_equal(parsed.host, "host");
}

static void an_ipv6_address_stands_in_brackets(void **state)
{
    (void)state;
    good("mysql://[::1]:3306/shop");
    assert_string_equal(parsed.host, "::1");
    assert_int_equal(parsed.port, 3306);
    good("mysql://[fe80::2]/shop");
    assert_string_equal(parsed.host, "fe80::2");
    bad("mysql://::1/shop", "in brackets");
    bad("mysql://[::1/shop", "has no ]");
    bad("mysql://[::1]x/shop", "only :port");
}

static void options_are_known_by_either_spelling(void **state)
{
    (void)state;
    good("mysql://h/d?ssl-mode=VERIFY_CA&ssl_ca=/etc/ca%20.pem&"
         "connect-timeout=3&SSL-cert=/c&ssl_key=/k");
    assert_int_equal(parsed.tls, MYSQL_TLS_VERIFY_CA);
    assert_string_equal(parsed.ssl_ca, "/etc/ca .pem");
    assert_string_equal(parsed.ssl_cert, "/c");
    assert_string_equal(parsed.ssl_key, "/k");
    assert_int_equal(parsed.connect_timeout, 3);
    good("mysql:///d?socket=/run/s.sock&user=ann&password=secret");
    assert_string_equal(parsed.socket, "/run/s.sock");
    assert_string_equal(parsed.user, "ann");
    assert_string_equal(parsed.password, "secret");
    good("mysql://h/d?tls_verify=true");
    assert_int_equal(parsed.tls, MYSQL_TLS_VERIFY_IDENTITY);
    good("mysql://h/d?ssl-mode=disabled&tls-verify=false");
    assert_int_equal(parsed.tls, MYSQL_TLS_DISABLED);
}

static void a_bad_url_is_told_what_is_wrong_without_its_password(void **state)
{
    (void)state;
    bad("mysql://ann:secret@h", "names no database");
    bad("mysql://ann:secret@h/", "names no database");
    bad("mysql://ann:secret@h/a/b", "cannot be a database's name");
    bad("mysql://ann:secret%2@h/d", "the password has a %");
    bad("mysql://ann:secret%zz@h/d", "the password has a %");
    bad("mysql://ann:secret%00@h/d", "NUL");
    bad("mysql://ann:secret@h:0/d", "port");
    bad("mysql://ann:secret@h:65536/d", "port");
    bad("mysql://ann:secret@h:x/d", "port");
    bad("mysql://h/d?password=secret%", "password has a %");
    bad("mysql://h/d?charset=latin1", "no option \"charset\"");
    bad("mysql://h/d?ssl-mode=maybe", "ssl-mode");
    bad("mysql://h/d?ssl-mode=verify_ca", "needs ssl_ca");
    bad("mysql://h/d?ssl_cert=/c", "come together");
    bad("mysql://h/d?connect_timeout=0", "connect_timeout");
    bad("mysql://h/d?connect_timeout=99999999999", "connect_timeout");
    bad("mysql://h/d?tls_verify=perhaps", "tls_verify");
    bad("mysql://h/d?socket=/s", "leave the host out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_schemes_are_taken_and_no_other),
        cmocka_unit_test(every_part_is_found),
        cmocka_unit_test(parts_may_be_left_out),
        cmocka_unit_test(parts_are_percent_decoded),
        cmocka_unit_test(an_at_sign_in_a_password_belongs_to_it),
        cmocka_unit_test(an_ipv6_address_stands_in_brackets),
        cmocka_unit_test(options_are_known_by_either_spelling),
        cmocka_unit_test(a_bad_url_is_told_what_is_wrong_without_its_password),
    };

    return cmocka_run_group_tests(tests, NULL, free_parsed);
}
