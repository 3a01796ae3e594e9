package care

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/readiness"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reasons of constraints (Gardener).
const (
	reasonConstraintNotChecked = "ConstraintNotChecked"
	reasonNoWebhooks           = "NoProblematicWebhooks"
	reasonWebhooks             = "ProblematicWebhooks"
	reasonRemediated           = "RemediatedWebhooks"
	reasonExpiring             = "ExpiringCACertificates"
	reasonConversion           = "CRDsWithProblematicConversionWebhooks"
	reasonIgnored              = "ManagedResourcesIgnored"
)

const (
	// authorityMargin is the minimum remaining validity of certificate authorities.
	authorityMargin = 365 * 24 * time.Hour
	// maxNamed limits the number of objects that a message names.
	maxNamed = 10
)

// Cluster contains the objects of a shoot cluster that may interfere with hibernation or maintenance.
type Cluster struct {
	// Webhooks are the webhook configurations, sorted by kind and name.
	Webhooks []Configuration
	// Converted are the names of the CustomResourceDefinitions whose stored objects a webhook must convert.
	Converted []string
	// Nodes are the nodes, nil until they are known.
	Nodes *Nodes
}

// Constraints returns all constraints, and when they change without an event. A zero time means never.
// HibernationPossible and MaintenancePreconditionsSatisfied are always present, the others only while they are False.
// Constraints of other controllers are retained.
func (o Observation) Constraints() ([]corev1beta1.Condition, time.Time) {
	constraints := slices.Clone(o.Shoot.Status.Constraints)
	if webhooks, known := o.webhooks(); known {
		for _, kind := range []corev1beta1.ConditionType{
			corev1beta1.ShootHibernationPossible, corev1beta1.ShootMaintenancePreconditionsSatisfied,
		} {
			constraints = corev1beta1.SetCondition(constraints, o.timed(corev1beta1.FindCondition(constraints, kind), kind, webhooks))
		}
	}
	authorities, next := o.expiring()
	constraints = o.whileFalse(constraints, corev1beta1.ShootCACertificateValiditiesAcceptable, authorities, o.Authorities != nil)
	constraints = o.whileFalse(
		constraints, corev1beta1.ShootCRDsWithProblematicConversionWebhooks, o.conversion(), o.Hibernated || o.Cluster != nil,
	)
	constraints = o.whileFalse(constraints, corev1beta1.ShootHasIgnoredManagedResources, o.ignored(), true)
	constraints = o.whileFalse(constraints, corev1beta1.ShootManualInPlaceWorkersUpdated, o.pendingPools(), true)
	constraints = o.whileFalse(constraints, corev1beta1.ShootBackupReady, o.Backup.problem(), o.Backup != nil)
	return constraints, next
}

// whileFalse sets a constraint if there is a finding, and removes it otherwise. If the result is not known, the list remains unchanged.
func (o Observation) whileFalse(
	constraints []corev1beta1.Condition, kind corev1beta1.ConditionType, found *finding, known bool,
) []corev1beta1.Condition {
	switch {
	case !known:
		return constraints
	case found == nil:
		return corev1beta1.RemoveCondition(constraints, kind)
	}
	return corev1beta1.SetCondition(constraints, o.timed(corev1beta1.FindCondition(constraints, kind), kind, *found))
}

// webhooks checks whether webhooks of the cluster may prevent it from waking up, or nodes from joining. The result is not
// known while the API server should answer but its webhooks have not been read. Existing constraints then remain
// unchanged.
func (o Observation) webhooks() (finding, bool) {
	switch {
	case o.Hibernated:
		return finding{status: corev1beta1.ConditionTrue, reason: reasonConstraintNotChecked, message: messageHibernated}, true
	case !o.Asked:
		return finding{status: corev1beta1.ConditionFalse, reason: reasonConstraintNotChecked, message: messageNotServing}, true
	case o.Cluster == nil:
		return finding{
			status: corev1beta1.ConditionUnknown, reason: corev1beta1.ReasonConditionInitialized,
			message: "the webhooks of the cluster have not been read yet",
		}, corev1beta1.FindCondition(o.Shoot.Status.Constraints, corev1beta1.ShootHibernationPossible) == nil
	}
	var problems, remediated []string
	for _, configuration := range o.Cluster.Webhooks {
		if found := configuration.problems(); len(found) > 0 {
			problems = append(problems, found...)
		} else if configuration.Annotations[constants.AnnotationGardenerWarning] != "" {
			remediated = append(remediated, configuration.String())
		}
	}
	codes := []corev1beta1.ErrorCode{corev1beta1.ErrorProblematicWebhook}
	switch {
	case len(problems) > 0:
		return finding{
			status: corev1beta1.ConditionFalse, reason: reasonWebhooks, codes: codes,
			message: "these webhooks may prevent the cluster from waking up or nodes from joining: " + named(problems),
		}, true
	case len(remediated) > 0:
		return finding{
			status: corev1beta1.ConditionFalse, reason: reasonRemediated, codes: codes,
			message: "gardenlet has changed these webhook configurations, as described in their annotation " + constants.AnnotationGardenerWarning +
				"; correct them and remove the annotation: " + named(remediated),
		}, true
	}
	return finding{status: corev1beta1.ConditionTrue, reason: reasonNoWebhooks, message: "All webhooks are properly configured."}, true
}

// expiring returns a finding for certificate authorities that expire within a year, and when the next one does.
func (o Observation) expiring() (*finding, time.Time) {
	if o.Hibernated {
		return nil, time.Time{}
	}
	var expiring []string
	var next time.Time
	for _, name := range slices.Sorted(maps.Keys(o.Authorities)) {
		until := o.Authorities[name]
		if from := until.Add(-authorityMargin); o.Now.Before(from) {
			next = requeue.Earlier(next, from)
			continue
		}
		expiring = append(expiring, fmt.Sprintf("%s (%s)", name, until.UTC().Format(time.DateOnly)))
	}
	if len(expiring) == 0 {
		return nil, next
	}
	return &finding{
		status: corev1beta1.ConditionFalse, reason: reasonExpiring,
		message: "these certificate authorities expire within a year: " + named(expiring) + "; rotate them with the operation rotate-ca-start",
	}, next
}

// conversion returns a finding for definitions with stored objects that a webhook must convert. If the webhook does not
// answer, they cannot be read.
func (o Observation) conversion() *finding {
	if o.Hibernated || o.Cluster == nil || len(o.Cluster.Converted) == 0 {
		return nil
	}
	return &finding{
		status: corev1beta1.ConditionFalse, reason: reasonConversion,
		message: "these CustomResourceDefinitions have several stored versions and a conversion webhook, " +
			"without which their objects cannot be read or deleted: " + named(o.Cluster.Converted),
	}
}

// ignored returns a finding for ManagedResources that are annotated to be ignored.
func (o Observation) ignored() *finding {
	var names []string
	for i := range o.Components {
		if ignored, err := strconv.ParseBool(o.Components[i].Annotations[resourcesv1alpha1.AnnotationIgnore]); err == nil && ignored {
			names = append(names, o.Components[i].Namespace+"/"+o.Components[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &finding{
		status: corev1beta1.ConditionFalse, reason: reasonIgnored,
		message: "these ManagedResources are annotated with " + resourcesv1alpha1.AnnotationIgnore +
			", so their objects are not applied: " + named(names),
	}
}

// named joins texts, up to the limit for messages.
func named(texts []string) string {
	shown := make([]string, 0, maxNamed+1)
	for _, text := range texts[:min(len(texts), maxNamed)] {
		shown = append(shown, readiness.Limited(text))
	}
	if more := len(texts) - maxNamed; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, "; ")
}
