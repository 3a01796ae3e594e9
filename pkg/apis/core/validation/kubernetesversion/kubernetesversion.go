// Package kubernetesversion has the feature gates, API versions and admission plugins of each minor version of Kubernetes.
//
// The tables are read from the sources of Kubernetes 1.32 to 1.37: test/compatibility_lifecycle/reference (1.32:
// test/featuregates_linter/test_data) for feature gates, pkg/controlplane/instance.go for API versions, and
// pkg/kubeapiserver/options/plugins.go for admission plugins. A new minor version needs a new column of all three.
package kubernetesversion

import "strings"

// The minor versions of Kubernetes 1 that the tables cover.
const (
	First uint = 32
	Last  uint = 37
)

// Range is a range of minor versions of Kubernetes 1, both ends included.
type Range struct{ First, Last uint }

// Has reports whether a minor version is in the range. A version that the tables do not cover is in every range, because
// its properties are unknown.
func (r Range) Has(minor uint) bool {
	return minor < First || minor > Last || r.First <= minor && minor <= r.Last
}

// FeatureGate is a feature gate of a component of Kubernetes.
type FeatureGate struct {
	Range
	// LockedSince is the first minor version in which the gate can only have the value LockedTo. It is 0 if the gate is not
	// locked.
	LockedSince uint
	LockedTo    bool
}

// Locked returns the fixed value of the gate in a minor version, and whether it has one.
func (g FeatureGate) Locked(minor uint) (value, locked bool) {
	return g.LockedTo, g.LockedSince > 0 && minor >= g.LockedSince && minor <= Last
}

// FeatureGateOf returns a feature gate by its name.
func FeatureGateOf(name string) (FeatureGate, bool) {
	gate, found := featureGates[name]
	return gate, found
}

// API is a version of an API group.
type API struct {
	Range
	// Required is true if every cluster needs the version. RequiredByNodes is true if every cluster with nodes needs it.
	Required, RequiredByNodes bool
}

// apiClasses are the keys of runtime-config that represent many API versions. Classes that include required versions are
// required.
var apiClasses = map[string]API{
	"api/all": {Range: Range{First, Last}, Required: true}, "api/ga": {Range: Range{First, Last}, Required: true},
	"api/beta": {Range: Range{First, Last}}, "api/alpha": {Range: Range{First, Last}},
}

// APIOf returns the API version for a key of runtime-config: <group>/<version>, <group>/<version>/<resource> or a class
// such as api/alpha. A single resource is never required.
func APIOf(key string) (API, bool) {
	if class, found := apiClasses[key]; found {
		return class, true
	}
	if api, found := apis[strings.TrimPrefix(key, "/")]; found {
		return api, true
	}
	i := strings.LastIndex(key, "/")
	if i < 0 || i == len(key)-1 {
		return API{}, false
	}
	api, found := apis[key[:i]]
	return API{Range: api.Range}, found
}

// AdmissionPlugin is an admission plugin of kube-apiserver.
type AdmissionPlugin struct {
	Range
	// Required is true if a cluster does not work or is not safe without the plugin.
	Required bool
	// Configurable is true if the plugin reads a configuration. HasKubeconfig is true if this refers to a kubeconfig.
	Configurable, HasKubeconfig bool
}

// AdmissionPluginOf returns an admission plugin by its name.
func AdmissionPluginOf(name string) (AdmissionPlugin, bool) {
	plugin, found := admissionPlugins[name]
	return plugin, found
}
