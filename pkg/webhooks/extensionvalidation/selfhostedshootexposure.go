package extensionvalidation

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type selfHostedShootExposureSpec struct {
	Type           string `json:"type"`
	CredentialsRef *struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Namespace  string `json:"namespace"`
		Name       string `json:"name"`
	} `json:"credentialsRef"`
	Port      int32             `json:"port"`
	Endpoints []exposedEndpoint `json:"endpoints"`
}

// exposedEndpoint is a node that runs control plane components.
type exposedEndpoint struct {
	NodeName  string               `json:"nodeName"`
	Addresses []corev1.NodeAddress `json:"addresses"`
}

func checkSelfHostedShootExposure(exposure *object[selfHostedShootExposureSpec]) field.ErrorList {
	spec := &exposure.Spec
	errs := required(text{specPath.Child("type"), spec.Type})
	for _, message := range validation.IsValidPortNum(int(spec.Port)) {
		errs = append(errs, field.Invalid(specPath.Child("port"), spec.Port, message))
	}
	errs = append(errs, checkCredentialsRef(spec, exposure.Namespace)...)
	if len(spec.Endpoints) == 0 {
		errs = append(errs, missing(specPath.Child("endpoints")))
	}
	return append(errs, each(spec.Endpoints, specPath.Child("endpoints"), checkEndpoint)...)
}

func checkEndpoint(path *field.Path, endpoint *exposedEndpoint) field.ErrorList {
	errs := required(text{path.Child("nodeName"), endpoint.NodeName})
	return append(errs, each(endpoint.Addresses, path.Child("addresses"), checkNodeAddress)...)
}

// checkCredentialsRef accepts only Secrets in the namespace of the object, to prevent access to Secrets of other
// namespaces.
func checkCredentialsRef(spec *selfHostedShootExposureSpec, namespace string) field.ErrorList {
	reference := spec.CredentialsRef
	if reference == nil {
		return nil
	}
	path := specPath.Child("credentialsRef")
	errs := required(text{path.Child("name"), reference.Name})
	if reference.APIVersion != "v1" {
		errs = append(errs, field.NotSupported(path.Child("apiVersion"), reference.APIVersion, []string{"v1"}))
	}
	if reference.Kind != "Secret" {
		errs = append(errs, field.NotSupported(path.Child("kind"), reference.Kind, []string{"Secret"}))
	}
	if reference.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("namespace"), reference.Namespace, "must be the namespace of the object"))
	}
	return errs
}

// checkNodeAddress accepts upper case in host names, because DNS is case-insensitive.
func checkNodeAddress(path *field.Path, address *corev1.NodeAddress) field.ErrorList {
	switch address.Type {
	case corev1.NodeInternalIP, corev1.NodeExternalIP:
		return checkIP(path.Child("address"), address.Address)
	case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
		var errs field.ErrorList
		for _, message := range validation.IsDNS1123Subdomain(strings.TrimSuffix(strings.ToLower(address.Address), ".")) {
			errs = append(errs, field.Invalid(path.Child("address"), address.Address, message))
		}
		return errs
	default:
		return field.ErrorList{field.NotSupported(path.Child("type"), address.Type, []corev1.NodeAddressType{
			corev1.NodeHostName, corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeInternalDNS, corev1.NodeExternalDNS,
		})}
	}
}

func compareSelfHostedShootExposures(spec, old *selfHostedShootExposureSpec) field.ErrorList {
	return immutable(change{specPath.Child("type"), spec.Type, old.Type})
}
