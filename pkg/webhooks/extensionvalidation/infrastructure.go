package extensionvalidation

import "k8s.io/apimachinery/pkg/util/validation/field"

func checkInfrastructure(infrastructure *object[located]) field.ErrorList {
	return infrastructure.Spec.check()
}

func compareInfrastructures(spec, old *located) field.ErrorList { return spec.compare(old) }
