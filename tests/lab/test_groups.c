/* SM groups from occupancy answers (host/lab/groups.c): the H200's, made-up ones, and answers that fit no
 * groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lab/groups.h"

/* What a device with these groups answers. */
static void answers(const int *groups, size_t n, int active[CLAB_GROUPS_MOST_SMS + 1])
{
    memset(active, 0, (CLAB_GROUPS_MOST_SMS + 1) * sizeof *active);
    for (int size = 1; size <= CLAB_GROUPS_MOST_SMS; size++)
        for (size_t i = 0; i < n; i++)
            active[size] += groups[i] / size;
}

static void the_h200s_answers_give_its_groups(void **state)
{
    (void)state;
    /* NVIDIA H200, driver 580.159.04, 2026-11-30: sizes 1 to 16 and 17; above 18 there is none. */
    static const int active[CLAB_GROUPS_MOST_SMS + 1] = {0, 132, 66, 39, 30, 22, 17, 15, 15, 9,
                                                         7, 7,   7,  7,  7,  7,  7,  2,  2};
    static const int wanted[] = {18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2};
    int groups[132];
    assert_int_equal(clab_groups_solve(active, 132, groups), 12);
    assert_memory_equal(groups, wanted, sizeof wanted);
}

static void groups_come_back_from_their_answers(void **state)
{
    (void)state;
    static const struct {
        int groups[12];
        size_t n;
    } devices[] = {
        {{20, 20, 18, 16, 1}, 5}, {{32, 31, 16, 8, 8, 7, 5, 3, 2, 1, 1}, 11}, {{6}, 1}, {{1, 1, 1}, 3}};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        int active[CLAB_GROUPS_MOST_SMS + 1], groups[200], sms = 0;
        for (size_t j = 0; j < devices[i].n; j++)
            sms += devices[i].groups[j];
        answers(devices[i].groups, devices[i].n, active);
        assert_int_equal(clab_groups_solve(active, sms, groups), devices[i].n);
        assert_memory_equal(groups, devices[i].groups, devices[i].n * sizeof *groups);
    }
}

static void answers_of_no_groups_are_unknown(void **state)
{
    (void)state;
    int active[CLAB_GROUPS_MOST_SMS + 1], groups[200];
    static const int two[] = {16, 16}, large[] = {40};
    answers(two, 2, active);
    assert_int_equal(clab_groups_solve(active, 32, groups), 2);
    assert_int_equal(clab_groups_solve(active, 33, groups), 0); /* an SM is in no group */
    assert_int_equal(clab_groups_solve(active, 31, groups), 0);
    active[9] = 0; /* fewer of 9 than of 10 */
    assert_int_equal(clab_groups_solve(active, 32, groups), 0);
    answers(large, 1, active); /* beyond what is asked about */
    assert_int_equal(clab_groups_solve(active, 40, groups), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_h200s_answers_give_its_groups),
        cmocka_unit_test(groups_come_back_from_their_answers),
        cmocka_unit_test(answers_of_no_groups_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
