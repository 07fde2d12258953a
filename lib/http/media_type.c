/* SPDX-License-Identifier: Apache-2.0 */
#include "http/media_type.h"

#include "base/attr.h"
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *ending, *type;
} media_types[] = {
	{".txt", "text/plain; charset=utf-8"},
	{".log", "text/plain; charset=utf-8"},
	{".md", "text/markdown; charset=utf-8"},
	{".csv", "text/csv; charset=utf-8"},
	{".html", "text/html; charset=utf-8"},
	{".htm", "text/html; charset=utf-8"},
	{".css", "text/css; charset=utf-8"},
	{".js", "text/javascript; charset=utf-8"},
	{".py", "text/x-python; charset=utf-8"},
	{".json", "application/json"},
	{".xml", "application/xml"},
	{".yaml", "application/yaml"},
	{".yml", "application/yaml"},
	{".pdf", "application/pdf"},
	{".zip", "application/zip"},
	{".gz", "application/gzip"},
	{".tar", "application/x-tar"},
	{".png", "image/png"},
	{".jpg", "image/jpeg"},
	{".jpeg", "image/jpeg"},
	{".gif", "image/gif"},
	{".bmp", "image/bmp"},
	{".webp", "image/webp"},
	{".svg", "image/svg+xml"},
	{".ico", "image/x-icon"},
	{".wav", "audio/wav"},
	{".mp3", "audio/mpeg"},
	{".mp4", "video/mp4"},
	{".parquet", "application/vnd.apache.parquet"},
};

const char *media_type_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(media_types); i++)
		if (strcasecmp(dot, media_types[i].ending) == 0)
			return media_types[i].type;
	return "application/octet-stream";
}
