// Package registry is the external system of the example: it keeps registrations, over HTTP.
//
//	GET    /registrations          all registrations, as a JSON list
//	GET    /registrations/{name}   one of them, or 404
//	PUT    /registrations/{name}   sets it, and returns it; 409 unless the version is the one that it has, or 0 for none
//	DELETE /registrations/{name}   removes it, if it is there; 409 unless ?version= is the one that it has
//
// It knows nothing of operatorkit: it stands for whatever a controller has to keep in step without a watch.
package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxBody is how many bytes a registration may have as JSON.
const maxBody = 1 << 20

// Registration is what is registered.
type Registration struct {
	Name string `json:"name"`
	// Owner is who registered it.
	Owner string `json:"owner"`
	// Address is where it is, and Hosts the names that it serves.
	Address string   `json:"address"`
	Hosts   []string `json:"hosts"`
	// Version is what the registry counts it with: each change gives another one, which no other registration ever had.
	Version int64 `json:"version,omitempty"`
}

// Server is a registry in memory. It is safe for concurrent use.
type Server struct {
	http.Handler

	mu            sync.Mutex
	registrations map[string]Registration
	// version is the last one that was given.
	version int64
}

// NewServer returns an empty registry.
func NewServer() *Server {
	s := &Server{registrations: map[string]Registration{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /registrations", s.list)
	mux.HandleFunc("GET /registrations/{name}", s.get)
	mux.HandleFunc("PUT /registrations/{name}", s.put)
	mux.HandleFunc("DELETE /registrations/{name}", s.remove)
	s.Handler = mux
	return s
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	registrations := slices.AppendSeq([]Registration{}, maps.Values(s.registrations))
	s.mu.Unlock()
	slices.SortFunc(registrations, func(a, b Registration) int { return strings.Compare(a.Name, b.Name) })
	respond(w, registrations)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	registration, ok := s.registrations[r.PathValue("name")]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "there is no such registration", http.StatusNotFound)
		return
	}
	respond(w, registration)
}

func (s *Server) put(w http.ResponseWriter, r *http.Request) {
	var registration Registration
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&registration); err != nil {
		http.Error(w, "the body is no registration: "+err.Error(), http.StatusBadRequest)
		return
	}
	registration.Name = r.PathValue("name")
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.registrations[registration.Name].Version; registration.Version != now {
		http.Error(w, fmt.Sprintf("it has version %d, not %d", now, registration.Version), http.StatusConflict)
		return
	}
	s.version++
	registration.Version = s.version
	s.registrations[registration.Name] = registration
	respond(w, registration)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ok := s.registrations[r.PathValue("name")]
	if version := r.URL.Query().Get("version"); ok && version != strconv.FormatInt(now.Version, 10) {
		http.Error(w, fmt.Sprintf("it has version %d, not %q", now.Version, version), http.StatusConflict)
		return
	}
	delete(s.registrations, r.PathValue("name"))
	w.WriteHeader(http.StatusNoContent)
}

func respond(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // who does not listen any more gets nothing
}
