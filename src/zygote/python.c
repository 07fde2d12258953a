/* SPDX-License-Identifier: Apache-2.0 */
#include <Python.h>

#include <string.h>

#include "zygote/internal.h"
#include "zygote/zygote.h"

/*
 * Theory of operation. A Python module, which zygote.py loads by descriptor. Not through ctypes:
 * libffi would be a tenth of what every fork copies, and a call through it touches a dozen more
 * pages. Functions keep the GIL: there is one thread.
 *
 * The child's order is stored in memory that the zygote has never written.
 */

static struct fill box;
static struct order order;

static PyObject *move_text(PyObject *module attr_unused, PyObject *none attr_unused)
{
	zygote_move_text();
	Py_RETURN_NONE;
}

static PyObject *harden(PyObject *module attr_unused, PyObject *none attr_unused)
{
	return PyLong_FromLong(zygote_harden());
}

static PyObject *serve(PyObject *module attr_unused, PyObject *none attr_unused)
{
	zygote_serve(&box);
	Py_RETURN_NONE;
}

/* As the interpreter decodes its arguments. */
static PyObject *list_words(const char *word, uint32_t count)
{
	PyObject *list = PyList_New(count);

	for (Py_ssize_t i = 0; list && i < count; i++) {
		size_t len = strlen(word);
		PyObject *text = PyUnicode_DecodeUTF8(word, (Py_ssize_t)len, "surrogateescape");

		if (!text || PyList_SetItem(list, i, text) < 0) {
			Py_DECREF(list);
			return NULL;
		}
		word += len + 1;
	}
	return list;
}

static const char *skip_words(const char *word, uint32_t count)
{
	while (count-- > 0)
		word += strlen(word) + 1;
	return word;
}

/* become(usual: bytes) -> (arguments, variables); variables is None if they equal @usual. */
static PyObject *become_payload(PyObject *module attr_unused, PyObject *usual)
{
	const char *variables, *end;
	PyObject *arguments, *others;
	Py_ssize_t len = PyBytes_Size(usual);

	if (len < 0)
		return NULL;
	become(&box, &order);
	variables = skip_words(order.words, order.msg.argc);
	end = skip_words(variables, order.msg.envc);
	arguments = list_words(order.words, order.msg.argc);
	if (!arguments)
		return NULL;
	if (end - variables == len &&
	    memcmp(variables, PyBytes_AsString(usual), (size_t)len) == 0) {
		others = Py_None;
		Py_INCREF(others);
	} else {
		others = list_words(variables, order.msg.envc);
	}
	/* "N" takes ownership, and fails if either is NULL. */
	return Py_BuildValue("(NN)", arguments, others);
}

static PyObject *leaving(PyObject *module attr_unused, PyObject *code)
{
	long value = PyLong_AsLong(code);

	if (value == -1 && PyErr_Occurred())
		return NULL;
	zygote_leaving((int)value);
	Py_RETURN_NONE;
}

static PyObject *has_usual_streams(PyObject *module attr_unused, PyObject *none attr_unused)
{
	return PyBool_FromLong(zygote_has_usual_streams());
}

static PyMethodDef methods[] = {
	{"move_text", move_text, METH_NOARGS, NULL},
	{"harden", harden, METH_NOARGS, NULL},
	{"serve", serve, METH_NOARGS, NULL},
	{"become", become_payload, METH_O, NULL},
	{"leaving", leaving, METH_O, NULL},
	{"has_usual_streams", has_usual_streams, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "millibox_zygote",
	.m_methods = methods,
};

/* The interpreter looks up this name. */
PyMODINIT_FUNC PyInit_millibox_zygote(void); // NOLINT: not our name

PyMODINIT_FUNC PyInit_millibox_zygote(void) // NOLINT: not our name
{
	return PyModuleDef_Init(&definition);
}
