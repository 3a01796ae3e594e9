package extensionvalidation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	architectureAMD64 = "amd64"
	architectureARM64 = "arm64"
)

type workerSpec struct {
	Type      string          `json:"type"`
	Region    string          `json:"region"`
	SecretRef secretReference `json:"secretRef"`
	Pools     []workerPool    `json:"pools"`
}

type workerPool struct {
	Name         string `json:"name"`
	MachineType  string `json:"machineType"`
	MachineImage struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"machineImage"`
	Architecture *string `json:"architecture"`
	NodeTemplate struct {
		Capacity map[string]any `json:"capacity"`
	} `json:"nodeTemplate"`
}

func checkWorker(worker *object[workerSpec]) field.ErrorList {
	errs := checkLocated(worker.Spec.Type, worker.Spec.Region, worker.Spec.SecretRef)
	return append(errs, each(worker.Spec.Pools, specPath.Child("pools"), checkPool)...)
}

func checkPool(path *field.Path, pool *workerPool) field.ErrorList {
	errs := required(
		text{path.Child("name"), pool.Name},
		text{path.Child("machineType"), pool.MachineType},
		text{path.Child("machineImage", "name"), pool.MachineImage.Name},
		text{path.Child("machineImage", "version"), pool.MachineImage.Version},
	)
	if pool.Architecture != nil && *pool.Architecture != architectureAMD64 && *pool.Architecture != architectureARM64 {
		errs = append(errs, field.NotSupported(path.Child("architecture"), *pool.Architecture, []string{architectureAMD64, architectureARM64}))
	}
	names := slices.Sorted(maps.Keys(pool.NodeTemplate.Capacity))
	path = path.Child("nodeTemplate", "capacity")
	return append(errs, each(names, nil, func(_ *field.Path, name *string) field.ErrorList {
		path, value := path.Child(*name), pool.NodeTemplate.Capacity[*name] // the same path as in gardener-resource-manager
		quantity, errs := checkQuantity(path, value)
		if quantity != nil && quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path, value, "must not be negative"))
		}
		return errs
	})...)
}

func compareWorkers(spec, old *workerSpec) field.ErrorList {
	return immutable(
		change{specPath.Child("type"), spec.Type, old.Type},
		change{specPath.Child("region"), spec.Region, old.Region},
	)
}
