package extensionvalidation

import "k8s.io/apimachinery/pkg/util/validation/field"

func checkControlPlane(controlPlane *object[located]) field.ErrorList {
	return controlPlane.Spec.check()
}

func compareControlPlanes(spec, old *located) field.ErrorList { return spec.compare(old) }
