package health

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certificate has the fields of a Certificate or Issuer of cert.gardener.cloud that the checks read.
type certificate struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		State              string      `json:"state"`
		ObservedGeneration int64       `json:"observedGeneration"`
		Conditions         []condition `json:"conditions"`
	} `json:"status"`
}

// checkCertificate implements the rules of gardener-resource-manager. A Certificate that is being renewed keeps its
// previous health.
func checkCertificate(object *certificate) Verdict {
	verdict := object.generationVerdict()
	verdict.Unhealthy = cmp.Or(
		optional(object.Status.Conditions, "Ready", metav1.ConditionTrue),
		object.expectReady("certificate"),
	)
	return verdict
}

// checkIssuer implements the rules of gardener-resource-manager.
func checkIssuer(object *certificate) Verdict {
	verdict := object.generationVerdict()
	verdict.Unhealthy = object.expectReady("issuer")
	return verdict
}

func (c *certificate) generationVerdict() Verdict {
	detail := outdated(c.Status.ObservedGeneration, c.Metadata.Generation)
	return Verdict{Progressing: detail, Unobserved: detail != ""}
}

func (c *certificate) expectReady(what string) string {
	const ready = "Ready"
	if c.Status.State == ready {
		return ""
	}
	return fmt.Sprintf("%s state is %q (%q expected)", what, c.Status.State, ready)
}
