package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// NotUsed is a field that a configuration of Gardener's gardenlet may contain, and that has no effect.
type NotUsed struct {
	// Path of the field. It stands for all fields below it, too.
	Path string
	// Why it has no effect, for operators.
	Why string
}

// Unused returns the fields without an effect, in the order of the documentation.
func Unused() []NotUsed {
	const (
		observability = "there are no components for logging and monitoring"
		oneController = "one controller does this, when something changes"
		compaction    = "the operator of etcd has no such setting"
	)
	return []NotUsed{
		{"logging", observability},
		{"monitoring", observability},
		{"controllers.controllerInstallationCare", oneController},
		{"controllers.controllerInstallationRequired", oneController},
		{"controllers.networkPolicy.concurrentSyncs", "all namespaces are one request"},
		{"controllers.seedCare.syncPeriod", "conditions are computed when something changes"},
		{"controllers.shoot.progressReportPeriod", "progress is reported at once"},
		{"controllers.shootStatus", "the status of Shoots is written by the controllers that find it"},
		{"controllers.managedSeed.syncJitterPeriod", "a restart changes no gardenlet, so nothing has to be spread"},
		{"controllers.managedSeed.jitterUpdates", "a restart changes no gardenlet, so nothing has to be spread"},
		{"etcdConfig.custodianController", "the controller of Etcds reports their status"},
		{"etcdConfig.backupLeaderElection", "the member of etcd that leads takes the backups"},
		{"etcdConfig.featureGates", "the operator of etcd has no feature gates"},
		{"etcdConfig.backupCompactionController.workers", compaction},
		{"etcdConfig.backupCompactionController.activeDeadlineDuration", compaction},
		{"etcdConfig.backupCompactionController.metricsScrapeWaitDuration", compaction},
	}
}

// Inactive returns the paths of the fields without an effect that a configuration with defaults sets to other values than the defaults.
func Inactive(c *v1alpha1.GardenletConfiguration) ([]string, error) {
	defaults := &v1alpha1.GardenletConfiguration{}
	v1alpha1.SetDefaults(defaults)
	given, err := tree(c)
	if err != nil {
		return nil, err
	}
	usual, err := tree(defaults)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, field := range Unused() {
		path := strings.Split(field.Path, ".")
		if !reflect.DeepEqual(below(given, path), below(usual, path)) {
			paths = append(paths, field.Path)
		}
	}
	return paths, nil
}

// tree returns a configuration as decoded JSON.
func tree(c *v1alpha1.GardenletConfiguration) (any, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, fmt.Errorf("decode the configuration: %w", err)
	}
	return decoded, nil
}

// below returns the value at a path of decoded JSON, or nil if there is none.
func below(value any, path []string) any {
	for _, name := range path {
		object, is := value.(map[string]any)
		if !is {
			return nil
		}
		value = object[name]
	}
	return value
}
