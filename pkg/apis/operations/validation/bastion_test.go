package validation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
	"github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	. "github.com/trellis-k8s/trellis/pkg/apis/operations/validation"
)

func TestValidateBastion(t *testing.T) {
	Check(t, "operations", "bastion", NoDefaults, ValidateBastion, []Row{
		{"", "", ""},
		{"metadata/name", "a.b", "metadata.name Invalid"},
		{"spec/shootRef/name", "", "spec.shootRef.name Required"},
		{"spec/seedName", "", ""},
		{"spec/providerType", "", ""},
		{"spec/sshPublicKey", "''", "spec.sshPublicKey Required"},
		{"spec/sshPublicKey", "key", "spec.sshPublicKey Invalid"},
		{"spec/ingress", "[]", "spec.ingress Required"},
		{"spec/ingress/0/ipBlock", "{}", "spec.ingress[0].ipBlock.cidr Required"},
		{"spec/ingress/0/ipBlock/cidr", "192.0.2.1", "spec.ingress[0].ipBlock.cidr Invalid"},
		{"spec/ingress/0/ipBlock", "{cidr: '2001:db8::/32'}", ""},
		{"spec/ingress/0/ipBlock/except/0", "192.0.2.1", "spec.ingress[0].ipBlock.except[0] Invalid"},
		{"spec/ingress/0/ipBlock/except/0", "192.0.3.0/25", "spec.ingress[0].ipBlock.except[0] Invalid"},
		{"spec/ingress/0/ipBlock/except/0", "192.0.2.0/24", "spec.ingress[0].ipBlock.except[0] Invalid"},
	})
	CheckUpdate(t, "operations", "bastion", NoDefaults, ValidateBastionUpdate, []Row{
		{"", "", ""},
		{"spec/shootRef/name", "other", "spec.shootRef.name Invalid"},
		{"spec/sshPublicKey", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKxkQ0rGTrkHVWuRYhQ2bkd4kRz1Lx9nR7X4JfVvXy0v other", "spec.sshPublicKey Invalid"},
		{"spec/ingress/0/ipBlock", "{cidr: 192.0.3.0/24}", ""},
		{"spec/ingress", "[]", "spec.ingress Required"},
	})
}

func TestCreatorOfABastion(t *testing.T) {
	const refused = "metadata.annotations[gardener.cloud/created-by] Invalid"
	bastion := func(annotations map[string]string) *v1alpha1.Bastion {
		one := Decode(t, Example(t, "operations", "bastion", 0), NoDefaults[v1alpha1.Bastion])
		one.Annotations, one.ResourceVersion = annotations, "1"
		return one
	}
	alice, bob := map[string]string{"gardener.cloud/created-by": "alice"}, map[string]string{"gardener.cloud/created-by": "bob"}
	Compare(t, ValidateBastionUpdate(bastion(alice), bastion(alice)), "")
	Compare(t, ValidateBastionUpdate(bastion(bob), bastion(alice)), refused)
	Compare(t, ValidateBastionUpdate(bastion(nil), bastion(alice)), refused)
	Compare(t, ValidateBastionUpdate(bastion(alice), bastion(nil)), refused)
}

func TestValidateBastionStatusUpdate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	with := func(at time.Time) *v1alpha1.Bastion {
		heartbeat := metav1.NewTime(at)
		return &v1alpha1.Bastion{Status: v1alpha1.BastionStatus{LastHeartbeatTimestamp: &heartbeat}}
	}
	Compare(t, ValidateBastionStatusUpdate(with(now), nil, now), "")
	Compare(t, ValidateBastionStatusUpdate(&v1alpha1.Bastion{}, nil, now), "")
	Compare(t, ValidateBastionStatusUpdate(with(now.Add(time.Second)), nil, now), "status.lastHeartbeatTimestamp Invalid")
}
