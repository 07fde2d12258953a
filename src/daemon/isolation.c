/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/isolation.h"

#include "base/buf.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/observe/audit.h"
#include "driver/driver.h"
#include "wire/layer.h"
#include <limits.h>
#include <unistd.h>

#define NAMES_MAX 160

static void add_names(uint32_t layers, struct buf *names)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if ((layers & LAYER_BIT(i)) &&
		    buf_addf(names, "%s%s", names->len ? ", " : "", layer_name(i)) < 0)
			return; /* full: the first ones are named */
}

static void log_remedy(enum wire_layer layer)
{
	enum layer_starter starter = layer_starter(geteuid() == 0, systemd_delegation());
	char remedy[LAYER_REMEDY_MAX], self[PATH_MAX] = "milliboxd";
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len > 0)
		self[len] = '\0';
	layer_remedy(layer, starter, self, remedy);
	log_warn("this host lacks %s: %s; remedy: %s", layer_name(layer), layer_loss(layer),
	         remedy);
}

/* Log each, and add its name to @names. */
static void log_missing(uint32_t missing, struct buf *names)
{
	add_names(missing, names);
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (missing & LAYER_BIT(i))
			log_remedy((enum wire_layer)i);
}

int isolation_check_least(const struct driver_caps *caps, struct error *err)
{
	uint32_t missing = LAYERS_BEST_EFFORT & ~caps->layers;
	cleanup_buf struct buf names = BUF_INIT(NAMES_MAX);

	if (missing == 0)
		return 0;
	log_missing(missing, &names);
	return error_set(err, ERR_UNAVAILABLE, 0,
	                 "the host lacks %s, without which nothing is isolated", names.data);
}

int isolation_check(const struct config *config, const struct driver_caps *caps, struct error *err)
{
	uint32_t missing = caps->required_layers & ~caps->layers;
	cleanup_buf struct buf names = BUF_INIT(NAMES_MAX);

	if (missing == 0)
		return 0;
	log_missing(missing, &names);
	return error_set(err, ERR_UNAVAILABLE, 0,
	                 "isolation is %s and the host lacks %s; to accept the loss, set "
	                 "isolation: best-effort, or start it with "
	                 "MILLIBOX_ISOLATION=best-effort",
	                 config_isolation_name(config->isolation), names.data);
}

static void log_lost_layers(uint32_t lost, enum log_level level)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (lost & LAYER_BIT(i))
			log_ctx(level, NULL, "this host lacks %s: %s", layer_name(i),
			        layer_loss(i));
}

void isolation_log(const struct config *config, const struct driver_caps *caps)
{
	uint32_t missing = LAYERS_STRICT & ~caps->layers;

	if (config->host_network_enabled)
		log_warn("network host is enabled: boxes to which a policy gives it reach every "
		         "service on this host's loopback");
	log_lost_layers(missing, LOG_LEVEL_WARN);
	/* It is also missing if the settings do not ask for it. */
	if (config->io_bytes > 0 || config->io_ops > 0)
		log_lost_layers(LAYER_BIT(LAYER_CGROUP_IO) & ~caps->layers, LOG_LEVEL_INFO);
	log_lost_layers(LAYERS_ALL & ~LAYERS_STRICT & ~LAYER_BIT(LAYER_CGROUP_IO) & ~caps->layers,
	                LOG_LEVEL_DEBUG);
	if (config->isolation == CONFIG_ISOLATION_STRICT)
		log_info("isolation: strict");
	else if (missing == 0)
		log_warn("isolation: best-effort, although no required layer is missing");
	else
		log_warn("isolation: best-effort; programs run without the layers above, and every "
		         "result says so");
}

void isolation_audit(const struct config *config, struct audit *audit)
{
	if (config->isolation == CONFIG_ISOLATION_BEST_EFFORT)
		audit_write(audit, &(struct audit_event){
					   .action = "daemon.isolation",
					   .object = config_isolation_name(config->isolation),
					   .result = "ok"});
	if (config->host_network_enabled)
		audit_write(audit, &(struct audit_event){.action = "daemon.host_network",
		                                         .object = "enabled",
		                                         .result = "ok"});
}
