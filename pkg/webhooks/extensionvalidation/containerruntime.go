package extensionvalidation

import "k8s.io/apimachinery/pkg/util/validation/field"

type containerRuntimeSpec struct {
	Type       string `json:"type"`
	BinaryPath string `json:"binaryPath"`
	WorkerPool struct {
		Name string `json:"name"`
	} `json:"workerPool"`
}

func checkContainerRuntime(runtime *object[containerRuntimeSpec]) field.ErrorList {
	return required(
		text{specPath.Child("type"), runtime.Spec.Type},
		text{specPath.Child("binaryPath"), runtime.Spec.BinaryPath},
		text{specPath.Child("workerPool", "name"), runtime.Spec.WorkerPool.Name},
	)
}

func compareContainerRuntimes(spec, old *containerRuntimeSpec) field.ErrorList {
	return immutable(
		change{specPath.Child("type"), spec.Type, old.Type},
		change{specPath.Child("workerPool", "name"), spec.WorkerPool.Name, old.WorkerPool.Name},
	)
}
