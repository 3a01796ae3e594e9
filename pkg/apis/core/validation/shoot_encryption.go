package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// builtIn are the resources of the API groups that only Kubernetes itself can have: those without a domain.
var builtIn = map[string][]string{
	"": {
		"bindings", "configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes",
		"pods", "podtemplates", "replicationcontrollers", "resourcequotas", "serviceaccounts", "services",
	},
	"apps":        {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling": {"horizontalpodautoscalers"},
	"batch":       {"cronjobs", "jobs"},
	"policy":      {"poddisruptionbudgets"},
}

// neverEncrypted are resources of the core group that users do not create.
var neverEncrypted = []string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}

func validateEncryption(config *v1beta1.EncryptionConfig, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	errs := optionalOneOf(config.Provider.Type, path.Child("provider", "type"), v1beta1.EncryptionProviderTypeAESCBC,
		v1beta1.EncryptionProviderTypeAESGCM, v1beta1.EncryptionProviderTypeSecretbox)
	at := path.Child("resources")
	errs = append(errs, uniqueValues(config.Resources, at)...)
	for i, name := range config.Resources {
		resource, group, _ := strings.Cut(name, ".")
		core := group == "" || group == "core"
		if core {
			group = ""
		}
		known, withoutDomain := builtIn[group]
		switch {
		case name != strings.ToLower(name) || resource == "" || strings.HasSuffix(name, ".") || strings.Contains(name, "*"):
			errs = append(errs, field.Invalid(at.Index(i), name, "must be a resource in lower case, with its API group behind a dot"))
		case core && resource == "secrets":
			errs = append(errs, field.Forbidden(at.Index(i), "Secrets are always encrypted"))
		case core && slices.Contains(neverEncrypted, resource), group == "events.k8s.io", group == "extensions":
			errs = append(errs, field.Forbidden(at.Index(i), "the resource cannot be encrypted"))
		case len(validation.IsDNS1123Label(resource)) > 0 || !core && len(validation.IsDNS1123Subdomain(group)) > 0:
			errs = append(errs, field.Invalid(at.Index(i), name, "must be a resource in lower case, with its API group behind a dot"))
		case withoutDomain && !slices.Contains(known, resource), !withoutDomain && !strings.Contains(group, "."):
			errs = append(errs, field.Invalid(at.Index(i), name,
				"is not a resource of Kubernetes: use its plural with its API group behind a dot, such as configmaps or deployments.apps"))
		}
	}
	return errs
}

// validateEncryptionRotation checks that a key that is safe only for a limited number of writes is rotated regularly.
func validateEncryptionRotation(spec *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	if encryptionProvider(spec) != v1beta1.EncryptionProviderTypeAESGCM {
		return nil
	}
	at := path.Child("kubernetes", "kubeAPIServer", "encryptionConfig", "provider", "type")
	return forbidden(!rotatesEncryptionKey(spec.Maintenance), at,
		"needs spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod, as the key must be rotated regularly")
}

func rotatesEncryptionKey(maintenance *v1beta1.Maintenance) bool {
	if maintenance == nil || maintenance.AutoRotation == nil || maintenance.AutoRotation.Credentials == nil {
		return false
	}
	config := maintenance.AutoRotation.Credentials.ETCDEncryptionKey
	return config != nil && config.RotationPeriod != nil && config.RotationPeriod.Duration > 0
}

// validateEncryptionUpdate checks that the encrypted resources and the encryption provider change only while no key is
// rotated and no other change is rolled out.
func validateEncryptionUpdate(shoot, old *v1beta1.Shoot, path *field.Path) field.ErrorList {
	resourcesChange := !slices.Equal(encryptedResources(&shoot.Spec), encryptedResources(&old.Spec))
	before := encryptionProvider(&old.Spec)
	providerChanges := before != "" && encryptionProvider(&shoot.Spec) != before
	var errs field.ErrorList
	if resourcesChange {
		at := path.Child("resources")
		errs = append(errs, encryptionIsStable(old, "resources", at)...)
		for _, operation := range SplitOperations(shoot.Annotations[constants.AnnotationGardenerOperation]) {
			errs = append(errs, forbidden(rewrites(operation), at,
				fmt.Sprintf("resources cannot be changed while operation %q is pending", operation))...)
		}
	}
	if providerChanges {
		at := path.Child("provider", "type")
		errs = append(errs, encryptionIsStable(old, "provider type", at)...)
		errs = append(errs, forbidden(!canStartRotation(old.Status.LastOperation), at,
			"provider type can be changed only if the shoot was created successfully")...)
		errs = append(errs, forbidden(resourcesChange, at, "provider type and resources cannot be changed at the same time")...)
	}
	return errs
}

func encryptionIsStable(old *v1beta1.Shoot, what string, path *field.Path) field.ErrorList {
	phase := etcdKeyPhase(old)
	errs := forbidden(!rotationIsOver(phase), path,
		what+" cannot be changed while .status.credentials.rotation.etcdEncryptionKey.phase is "+string(phase))
	created := old.Status.Credentials != nil && old.Status.Credentials.EncryptionAtRest != nil
	errs = append(errs, forbidden(!encryptionIsRolledOut(old) || !created && old.Status.LastOperation != nil, path,
		what+" cannot be changed because a previous change of the encryption is being rolled out")...)
	return append(errs, forbidden(hibernated(old), path, what+" cannot be changed while the shoot is hibernated")...)
}

// encryptionIsRolledOut reports whether the encrypted resources are those of the specification.
func encryptionIsRolledOut(shoot *v1beta1.Shoot) bool {
	var is []string
	if shoot.Status.Credentials != nil && shoot.Status.Credentials.EncryptionAtRest != nil {
		is = canonicalResources(shoot.Status.Credentials.EncryptionAtRest.Resources)
	}
	return slices.Equal(is, encryptedResources(&shoot.Spec))
}

func encryptedResources(spec *v1beta1.ShootSpec) []string {
	if server := spec.Kubernetes.KubeAPIServer; server != nil && server.EncryptionConfig != nil {
		return canonicalResources(server.EncryptionConfig.Resources)
	}
	return nil
}

// canonicalResources sorts resources, and removes the name of the core group.
func canonicalResources(resources []string) []string {
	var canonical []string
	for _, resource := range resources {
		canonical = append(canonical, strings.TrimSuffix(resource, ".core"))
	}
	slices.Sort(canonical)
	return slices.Compact(canonical)
}

func encryptionProvider(spec *v1beta1.ShootSpec) v1beta1.EncryptionProviderType {
	if server := spec.Kubernetes.KubeAPIServer; server != nil && server.EncryptionConfig != nil {
		return ptr.Deref(server.EncryptionConfig.Provider.Type, "")
	}
	return ""
}
