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
	located
	Pools []workerPool `json:"pools"`
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
	errs := worker.Spec.check()
	for i := range worker.Spec.Pools {
		errs = append(errs, worker.Spec.Pools[i].check(specPath.Child("pools").Index(i))...)
	}
	return errs
}

func (p *workerPool) check(path *field.Path) field.ErrorList {
	errs := required(
		text{path.Child("name"), p.Name},
		text{path.Child("machineType"), p.MachineType},
		text{path.Child("machineImage", "name"), p.MachineImage.Name},
		text{path.Child("machineImage", "version"), p.MachineImage.Version},
	)
	if p.Architecture != nil && *p.Architecture != architectureAMD64 && *p.Architecture != architectureARM64 {
		errs = append(errs, field.NotSupported(path.Child("architecture"), *p.Architecture, []string{architectureAMD64, architectureARM64}))
	}
	for _, name := range slices.Sorted(maps.Keys(p.NodeTemplate.Capacity)) {
		path, value := path.Child("nodeTemplate", "capacity").Key(name), p.NodeTemplate.Capacity[name]
		quantity, quantityErrs := checkQuantity(path, value)
		if errs = append(errs, quantityErrs...); quantity != nil && quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path, value, "must not be negative"))
		}
	}
	return errs
}

func compareWorkers(spec, old *workerSpec) field.ErrorList { return spec.compare(&old.located) }
