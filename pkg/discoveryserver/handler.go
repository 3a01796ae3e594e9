package discoveryserver

import (
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// pathWorkloadIdentity is the path of the issuer of tokens of WorkloadIdentities.
const pathWorkloadIdentity = "/garden/workload-identity/issuer"

// maxAge is how long clients may keep documents, in seconds. A new key is published before tokens are signed with it, by the time that a rollout of
// API servers takes.
const maxAge = "300"

// Kinds of documents, for metrics.
const (
	kindShoot            = "shoot"
	kindWorkloadIdentity = "workload_identity"
	kindNone             = "none"
)

// handler serves the documents. synced reports whether all Secrets have been read; until then, it is not known which Shoots have documents.
type handler struct {
	shoots     *store
	identities *files
	synced     func() bool
	metrics    *serverMetrics
}

// newHandler returns the handler of all requests. It reads no body, and answers only GET and HEAD.
func newHandler(h handler) http.Handler {
	mux := http.NewServeMux()
	for path, text := range map[string]func(issuer.Documents) (content, body string){
		issuer.PathConfiguration: func(d issuer.Documents) (content, body string) { return "application/json", d.Configuration },
		issuer.PathKeys:          func(d issuer.Documents) (content, body string) { return "application/jwk-set+json", d.Keys },
	} {
		mux.HandleFunc("GET "+issuer.Path("{project}", "{uid}")+path, h.counted(kindShoot, func(w http.ResponseWriter, request *http.Request) int {
			if !h.synced() {
				w.Header().Set("Retry-After", "5")
				return refuse(w, http.StatusServiceUnavailable)
			}
			documents, found := h.shoots.find(issuer.Path(request.PathValue("project"), types.UID(request.PathValue("uid"))))
			return answer(w, documents, found, text)
		}))
		mux.HandleFunc("GET "+pathWorkloadIdentity+path, h.counted(kindWorkloadIdentity, func(w http.ResponseWriter, _ *http.Request) int {
			documents, found := h.identities.find()
			return answer(w, documents, found, text)
		}))
	}
	mux.HandleFunc("GET /", h.counted(kindNone, func(w http.ResponseWriter, _ *http.Request) int { return refuse(w, http.StatusNotFound) }))
	return http.MaxBytesHandler(mux, 0)
}

// counted counts the answers of a handler by their status.
func (h handler) counted(kind string, serve func(http.ResponseWriter, *http.Request) int) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		h.metrics.answered(kind, serve(w, request))
	}
}

// answer writes a document, and returns the status.
func answer(w http.ResponseWriter, documents issuer.Documents, found bool, text func(issuer.Documents) (content, body string)) int {
	if !found {
		return refuse(w, http.StatusNotFound)
	}
	content, body := text(documents)
	w.Header().Set("Content-Type", content)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Cache-Control", "public, max-age="+maxAge)
	w.Header().Set("Access-Control-Allow-Origin", "*") // the documents are public
	_, _ = w.Write([]byte(body))                       // a client that has gone needs no answer
	return http.StatusOK
}

// refuse writes a status without a document, which clients must not keep: the document may exist soon.
func refuse(w http.ResponseWriter, status int) int {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
	return status
}
