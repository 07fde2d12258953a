/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/list.h"

struct item {
	int before; /* so that the node is not at the start */
	struct list node;
};

static int sum_of(struct list *head)
{
	struct item *item;
	int sum = 0;

	LIST_FOREACH (item, head, struct item, node)
		sum = sum * 10 + item->before;
	return sum;
}

static void an_empty_list_has_no_first(void **state)
{
	struct list head;

	(void)state;
	list_init(&head);
	assert_true(list_is_empty(&head));
	assert_null(LIST_FIRST(&head, struct item, node));
	assert_int_equal(sum_of(&head), 0);
}

static void entries_come_in_the_order_they_were_appended(void **state)
{
	struct list head;
	struct item a = {1, {0}}, b = {2, {0}}, c = {3, {0}};

	(void)state;
	list_init(&head);
	list_append(&head, &a.node);
	list_append(&head, &b.node);
	list_append(&head, &c.node);
	assert_int_equal(sum_of(&head), 123);
	assert_ptr_equal(LIST_FIRST(&head, struct item, node), &a);

	list_remove(&b.node);
	assert_int_equal(sum_of(&head), 13);
	assert_true(list_is_empty(&b.node));
	list_remove(&b.node); /* no longer on a list: harmless */
	list_append(&head, &b.node);
	assert_int_equal(sum_of(&head), 132);
}

static void entries_may_be_freed_on_the_way(void **state)
{
	struct list head;
	struct item *item;
	int freed = 0;

	(void)state;
	list_init(&head);
	for (int i = 0; i < 5; i++)
		list_append(&head, &NEW(struct item)->node);
	LIST_FOREACH (item, &head, struct item, node) {
		list_remove(&item->node);
		free(item);
		freed++;
	}
	assert_int_equal(freed, 5);
	assert_true(list_is_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_list_has_no_first),
		cmocka_unit_test(entries_come_in_the_order_they_were_appended),
		cmocka_unit_test(entries_may_be_freed_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
