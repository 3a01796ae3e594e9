package bastion

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1xJhXYm9ivZDDCSrsSFmtCWX8VOoZhJpuCcs8fhx2Z"

// machines are the settings of the extension.
var machines = local.Machines{Namespace: "extension-provider-local"}

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "one"}}
	object.Spec.UserData = []byte("#!/bin/bash -eu\nuseradd gardener\necho \"" + key + " me@here\" > /home/gardener/.ssh/authorized_keys\nsystemctl start ssh\n")
	object.Spec.Ingress = []extensionsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}
	plan, err := Plan(object, "registry.example.org/provider-local:v1", machines)
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckPlan(t, "bastion", plan, nil)
	open := object.DeepCopy()
	open.Spec.Ingress = nil
	if _, err := Plan(open, "image", machines); err == nil || !strings.Contains(err.Error(), "spec.ingress is empty") {
		t.Errorf("without ingress, which would allow all addresses: %v", err)
	}
	object.Spec.UserData = []byte("#!/bin/sh\n")
	if _, err := Plan(object, "image", machines); err == nil || !strings.Contains(err.Error(), "no public key") {
		t.Errorf("without a key: %v", err)
	}
}

func TestAuthorizedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"echo '" + key + "'":                       key + "\n",
		key + "\n" + key:                           key + "\n" + key + "\n",
		"ssh-ed25519 AAAA and " + key + " me@here": key + "\n",
		"xssh-ed25519 AAAA":                        "",
	} {
		got, err := authorizedKeys([]byte(text))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
