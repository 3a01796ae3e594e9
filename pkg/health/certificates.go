package health

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certificate is what matters of a Certificate or Issuer of cert.gardener.cloud.
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

// checkCertificate has the rules of gardener-resource-manager: one that is being renewed is as well as it was before.
func checkCertificate(object *certificate) Verdict {
	verdict := object.generationVerdict()
	verdict.Unhealthy = cmp.Or(
		optional(object.Status.Conditions, "Ready", metav1.ConditionTrue),
		object.expectReady("certificate"),
	)
	return verdict
}

// checkIssuer has the rules of gardener-resource-manager.
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
