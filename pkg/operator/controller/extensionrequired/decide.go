// Package extensionrequired reports whether extensions are needed: in the runtime cluster, by the Garden or by extension objects of the
// class garden, and in Seeds.
package extensionrequired

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// Reasons of conditions (Gardener).
const (
	reasonRequired       = "ExtensionRequired"
	reasonNotRequired    = "ExtensionNotRequired"
	reasonInstallation   = "RequiredControllerInstallation"
	reasonNoInstallation = "NoRequiredControllerInstallation"
)

// runtimeKinds are the kinds of extension objects in the runtime cluster.
func runtimeKinds() []string {
	return []string{corev1beta1.KindBackupBucket, corev1beta1.KindBackupEntry, corev1beta1.KindDNSRecord, corev1beta1.KindExtension}
}

// requested returns the kinds and types that a Garden asks for, as "<kind>/<type>". A Garden that is being deleted asks for nothing more.
func requested(garden *operatorv1alpha1.Garden) []string {
	if garden == nil || garden.DeletionTimestamp != nil {
		return nil
	}
	var all []string
	if etcd := garden.Spec.VirtualCluster.ETCD; etcd != nil && etcd.Main != nil && etcd.Main.Backup != nil {
		for _, kind := range []string{corev1beta1.KindBackupBucket, corev1beta1.KindBackupEntry} {
			all = append(all, kind+"/"+etcd.Main.Backup.Provider)
		}
	}
	if garden.Spec.DNS != nil {
		for _, provider := range garden.Spec.DNS.Providers {
			all = append(all, corev1beta1.KindDNSRecord+"/"+provider.Type)
		}
	}
	for _, extension := range garden.Spec.Extensions {
		all = append(all, corev1beta1.KindExtension+"/"+extension.Type)
	}
	return all
}

// inRuntime returns the condition RequiredRuntime of an Extension. existing are the kinds and types of its resources with objects, joined.
func inRuntime(extension *operatorv1alpha1.Extension, garden *operatorv1alpha1.Garden, existing string) corev1beta1.Condition {
	needed := requested(garden)
	var found []string
	for _, resource := range extension.Spec.Resources {
		id := resource.Kind + "/" + resource.Type
		enabled := garden != nil && garden.DeletionTimestamp == nil && resource.Kind == corev1beta1.KindExtension &&
			slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeGarden)
		if enabled || slices.Contains(needed, id) {
			found = append(found, id)
		}
	}
	if existing != "" {
		found = append(found, strings.Split(existing, ", ")...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 {
		return corev1beta1.Condition{
			Type: operatorv1alpha1.ExtensionRequiredRuntime, Status: corev1beta1.ConditionFalse, Reason: reasonNotRequired,
			Message: "The Garden asks for none of its kinds and types, and there is no object of them in the runtime cluster.",
		}
	}
	return corev1beta1.Condition{
		Type: operatorv1alpha1.ExtensionRequiredRuntime, Status: corev1beta1.ConditionTrue, Reason: reasonRequired,
		Message: "The runtime cluster needs it for " + strings.Join(found, ", ") + ".",
	}
}

// inSeeds returns the condition RequiredVirtual of an Extension.
func inSeeds(extension *operatorv1alpha1.Extension, installations []corev1beta1.ControllerInstallation) corev1beta1.Condition {
	var names []string
	for i := range installations {
		if installations[i].Spec.RegistrationRef.Name != extension.Name {
			continue
		}
		required := corev1beta1.FindCondition(installations[i].Status.Conditions, corev1beta1.ControllerInstallationRequired)
		if required != nil && required.Status == corev1beta1.ConditionTrue {
			names = append(names, installations[i].Name)
		}
	}
	if len(names) == 0 {
		return corev1beta1.Condition{
			Type: operatorv1alpha1.ExtensionRequiredVirtual, Status: corev1beta1.ConditionFalse, Reason: reasonNoInstallation,
			Message: "No Seed has objects of its kinds and types.",
		}
	}
	slices.Sort(names)
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return corev1beta1.Condition{
		Type: operatorv1alpha1.ExtensionRequiredVirtual, Status: corev1beta1.ConditionTrue, Reason: reasonInstallation,
		Message: "Seeds need it: ControllerInstallation " + strings.Join(names, ", ") + more + ".",
	}
}
