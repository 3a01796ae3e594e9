package graph

import (
	"crypto/x509"
	"encoding/pem"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/requester"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// ofBackupBucket returns the edges of a BackupBucket. The name of its generated Secret follows from its own: gardenlet writes the
// reference in its status, and could name any Secret there.
func ofBackupBucket(bucket *corev1beta1.BackupBucket, _ Facts) []Edge {
	e := &edges{to: vertexOf(BackupBucket, bucket)}
	e.seeds(bucket.Spec.SeedName)
	e.shoot(Own, bucket.Spec.ShootRef)
	e.credentials(Protect, bucket.Spec.CredentialsRef)
	e.add(Own, Secret, constants.GardenNamespace, constants.PrefixGeneratedBackupBucketSecret+bucket.Name)
	return e.all
}

func reduceBackupBucket(bucket *corev1beta1.BackupBucket) *corev1beta1.BackupBucket {
	reduced := &corev1beta1.BackupBucket{ObjectMeta: cachetransform.Meta(bucket)}
	reduced.Spec = corev1beta1.BackupBucketSpec{
		SeedName: bucket.Spec.SeedName, ShootRef: bucket.Spec.ShootRef, CredentialsRef: bucket.Spec.CredentialsRef,
	}
	return reduced.DeepCopy()
}

// ofBackupEntry returns the edges of a BackupEntry. An entry that moved is in the bucket of another Seed, which it may only read. A Shoot that
// moves takes its entry from the Seed that has given it up, also back to that Seed: a policy of gardenlet's chart restricts this.
func ofBackupEntry(entry *corev1beta1.BackupEntry, _ Facts) []Edge {
	e := &edges{to: vertexOf(BackupEntry, entry)}
	e.seeds(entry.Spec.SeedName, entry.Status.SeedName)
	e.shoot(Own, entry.Spec.ShootRef)
	e.add(Read, BackupBucket, "", entry.Spec.BucketName)
	for _, owner := range entry.OwnerReferences {
		if Kind(owner.Kind) == Shoot {
			e.link(Protect, e.to, ShootVertex(entry.Namespace, owner.Name))
		}
	}
	return e.all
}

func reduceBackupEntry(entry *corev1beta1.BackupEntry) *corev1beta1.BackupEntry {
	reduced := &corev1beta1.BackupEntry{ObjectMeta: cachetransform.Meta(entry), Spec: entry.Spec}
	reduced.OwnerReferences, reduced.Status.SeedName = entry.OwnerReferences, entry.Status.SeedName
	return reduced.DeepCopy()
}

func ofBastion(bastion *operationsv1alpha1.Bastion, _ Facts) []Edge {
	e := &edges{to: vertexOf(Bastion, bastion)}
	if bastion.Spec.SeedName != nil {
		e.seeds(bastion.Spec.SeedName)
	} else if name := bastion.Spec.ShootRef.Name; name != "" {
		e.link(Own, e.to, ShootVertex(bastion.Namespace, name))
	}
	return e.all
}

func reduceBastion(bastion *operationsv1alpha1.Bastion) *operationsv1alpha1.Bastion {
	reduced := &operationsv1alpha1.Bastion{ObjectMeta: cachetransform.Meta(bastion)}
	reduced.Spec.SeedName, reduced.Spec.ShootRef = bastion.Spec.SeedName, bastion.Spec.ShootRef
	return reduced.DeepCopy()
}

// ofInstallation returns the edges of a ControllerInstallation. Only its registration and deployment may be read through it.
func ofInstallation(installation *corev1beta1.ControllerInstallation, _ Facts) []Edge {
	e := &edges{to: vertexOf(ControllerInstallation, installation)}
	if ref := installation.Spec.SeedRef; ref != nil {
		e.seeds(&ref.Name)
	}
	e.shoot(Own, installation.Spec.ShootRef)
	e.add(Read, ControllerRegistration, "", installation.Spec.RegistrationRef.Name)
	if ref := installation.Spec.DeploymentRef; ref != nil {
		e.add(Read, ControllerDeployment, "", ref.Name)
	}
	return e.all
}

func reduceInstallation(installation *corev1beta1.ControllerInstallation) *corev1beta1.ControllerInstallation {
	reduced := &corev1beta1.ControllerInstallation{ObjectMeta: cachetransform.Meta(installation)}
	reduced.Spec = installation.Spec
	reduced.Spec.ResourceRefs = nil
	return reduced.DeepCopy()
}

// ofDeployment returns the edges of a ControllerDeployment: from the objects for its chart, and for the chart's values.
func ofDeployment(deployment *gardencorev1.ControllerDeployment, _ Facts) []Edge {
	e := &edges{to: vertexOf(ControllerDeployment, deployment)}
	if helm := deployment.Helm; helm != nil && helm.OCIRepository != nil {
		for _, ref := range []*corev1.LocalObjectReference{helm.OCIRepository.PullSecretRef, helm.OCIRepository.CABundleSecretRef} {
			if ref != nil {
				e.add(Read, Secret, constants.GardenNamespace, ref.Name)
			}
		}
	}
	for _, named := range deployment.Resources {
		e.refer(Read, named.ResourceRef.Kind, constants.GardenNamespace, named.ResourceRef.Name)
	}
	return e.all
}

func reduceDeployment(deployment *gardencorev1.ControllerDeployment) *gardencorev1.ControllerDeployment {
	reduced := &gardencorev1.ControllerDeployment{ObjectMeta: cachetransform.Meta(deployment), Resources: deployment.Resources}
	if helm := deployment.Helm; helm != nil && helm.OCIRepository != nil {
		reduced.Helm = &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{
			PullSecretRef: helm.OCIRepository.PullSecretRef, CABundleSecretRef: helm.OCIRepository.CABundleSecretRef,
		}}
	}
	return reduced.DeepCopy()
}

// ofRequest returns the edge of a CertificateSigningRequest to the Seed or Shoot for which it requests a certificate.
func ofRequest(request *certificatesv1.CertificateSigningRequest, _ Facts) []Edge {
	e := &edges{to: vertexOf(CertificateSigningRequest, request)}
	subject, is := SubjectOf(request)
	switch {
	case !is || subject.Program != requester.Gardenlet:
	case subject.Seed != "":
		e.link(Read, e.to, SeedVertex(subject.Seed))
	default:
		e.link(Read, e.to, ShootVertex(subject.Shoot.Namespace, subject.Shoot.Name))
	}
	return e.all
}

// SubjectOf returns the program for which a request is, if it is a valid request for a client certificate of such a program.
func SubjectOf(request *certificatesv1.CertificateSigningRequest) (requester.Requester, bool) {
	if request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return requester.Requester{}, false
	}
	for _, usage := range request.Spec.Usages {
		switch usage {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth:
		default:
			return requester.Requester{}, false
		}
	}
	block, rest := pem.Decode(request.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return requester.Requester{}, false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || parsed.CheckSignature() != nil {
		return requester.Requester{}, false
	}
	if len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0 || len(parsed.Subject.Organization) != 1 {
		return requester.Requester{}, false
	}
	return requester.Of(parsed.Subject.CommonName, parsed.Subject.Organization)
}

func reduceRequest(request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	reduced := &certificatesv1.CertificateSigningRequest{ObjectMeta: cachetransform.Meta(request)}
	reduced.Spec = certificatesv1.CertificateSigningRequestSpec{
		Request: request.Spec.Request, SignerName: request.Spec.SignerName, Usages: request.Spec.Usages,
	}
	return reduced.DeepCopy()
}

// ofProject returns the edge of a Project to its namespace.
func ofProject(project *corev1beta1.Project, _ Facts) []Edge {
	e := &edges{to: Vertex{Kind: Namespace, Name: ptr.Deref(project.Spec.Namespace, "")}}
	if e.to.Name != "" {
		e.add(Read, Project, "", project.Name)
	}
	return e.all
}

func reduceProject(project *corev1beta1.Project) *corev1beta1.Project {
	reduced := &corev1beta1.Project{ObjectMeta: cachetransform.Meta(project)}
	reduced.Spec.Namespace = project.Spec.Namespace
	return reduced.DeepCopy()
}

func ofSecretBinding(binding *corev1beta1.SecretBinding, _ Facts) []Edge {
	e := &edges{to: vertexOf(SecretBinding, binding)}
	e.add(Read, Secret, binding.SecretRef.Namespace, binding.SecretRef.Name)
	return e.all
}

func ofCredentialsBinding(binding *securityv1alpha1.CredentialsBinding, _ Facts) []Edge {
	e := &edges{to: vertexOf(CredentialsBinding, binding)}
	e.refer(Read, binding.CredentialsRef.Kind, binding.CredentialsRef.Namespace, binding.CredentialsRef.Name)
	return e.all
}
