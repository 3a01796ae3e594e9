package gardenlet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of the garden's clients.
type authority struct {
	certFile, keyFile string
	certificate       []byte
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "clients"}, key)
	if err != nil {
		return nil, err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	a := &authority{
		certFile: filepath.Join(dir, "clients.crt"), keyFile: filepath.Join(dir, "clients.key"),
		certificate: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate.Raw}),
	}
	return a, errors.Join(os.WriteFile(a.certFile, a.certificate, 0o600), os.WriteFile(a.keyFile, encoded, 0o600))
}

// args returns the arguments of kube-controller-manager.
func (a *authority) args() []string {
	return []string{"--cluster-signing-cert-file=" + a.certFile, "--cluster-signing-key-file=" + a.keyFile}
}

// addTo adds the authority to a file of kube-apiserver, which reads the file again when it changes.
func (a *authority) addTo(path string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, append(before, a.certificate...), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
