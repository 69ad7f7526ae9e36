package git_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/artifact"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch/git"
)

// forge is a server with one repository, which git itself serves.
type forge struct {
	t      *testing.T
	folder string
	url    string
	packs  atomic.Int64
}

func newForge(t *testing.T) *forge {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git: install it, for example by apt-get install git, to test sources in Git")
	}
	f := &forge{t: t, folder: filepath.Join(t.TempDir(), "app.git")}
	f.git("init", "-q", "-b", "main", f.folder)
	f.git("-C", f.folder, "config", "uploadpack.allowReachableSHA1InWant", "true")
	backend := &cgi.Handler{
		Stderr: io.Discard, Path: program, Args: []string{"http-backend"}, Dir: f.folder,
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(f.folder), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if strings.HasPrefix(r.URL.Path, "/private/") {
			if user != "ann" || password != "secret-1" {
				w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
				http.Error(w, "you said "+password, http.StatusUnauthorized)
				return
			}
			r.URL.Path = strings.TrimPrefix(r.URL.Path, "/private")
		} else if user != "" {
			t.Errorf("the login was sent to %s", r.URL)
		}
		if r.Method == http.MethodPost {
			f.packs.Add(1)
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = "git+" + server.URL + "/app.git/.git"
	return f
}

func (f *forge) git(args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=ann",
		"GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, and returns the commit.
func (f *forge) commit(files map[string]string) string {
	f.t.Helper()
	for name, text := range files {
		path := filepath.Join(f.folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.git("-C", f.folder, "add", "-A")
	f.git("-C", f.folder, "commit", "-q", "-m", "change")
	return f.git("-C", f.folder, "rev-parse", "HEAD")
}

func newFetcher(t *testing.T, config fetch.Config) *fetch.Fetcher {
	t.Helper()
	config.Folder, config.Git = t.TempDir(), git.New()
	fetcher, err := fetch.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return fetcher
}

// contents are the files of an artifact.
func contents(t *testing.T, files *artifact.Files) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(files.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files.FS, name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFilesOfABranchATagAndACommit(t *testing.T) {
	f := newForge(t)
	first := map[string]string{"base/a.yaml": "one: 1\n", "prod/kustomization.yaml": "resources: [../base]\n"}
	one := f.commit(first)
	f.git("-C", f.folder, "tag", "light")
	f.git("-C", f.folder, "tag", "-m", "with words", "v1.0.0")
	if err := os.Symlink("a.yaml", filepath.Join(f.folder, "base", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "line %d of a text that is sent once only\n", i*i)
	}
	second := map[string]string{"base/a.yaml": text.String(), "base/b.yaml": text.String() + "and a line\n", "prod/kustomization.yaml": first["prod/kustomization.yaml"], "new/run.sh": "true\n"}
	two := f.commit(second)
	for ref, want := range map[string]struct {
		commit string
		files  map[string]string
	}{
		"refs/heads/main":  {two, second},
		"refs/tags/light":  {one, first},
		"refs/tags/v1.0.0": {one, first},
		one:                {one, first},
		two:                {two, second},
	} {
		files, err := newFetcher(t, fetch.Config{}).Files(t.Context(), v1alpha1.Artifact{URL: f.url, Ref: ref}, fetch.Credentials{})
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if diff := cmp.Diff(want.files, contents(t, files)); diff != "" || files.Digest != "git:"+want.commit {
			t.Errorf("%s is %s (-want +got):\n%s", ref, files.Digest, diff)
		}
	}
}

func TestACommitIsFetchedOnceAndABranchThatMovesAgain(t *testing.T) {
	f := newForge(t)
	one := f.commit(map[string]string{"a.yaml": "1"})
	fetcher := newFetcher(t, fetch.Config{Trust: -1})
	get := func(ref, want string, packs int64) {
		t.Helper()
		files, err := fetcher.Files(t.Context(), v1alpha1.Artifact{URL: f.url, Ref: ref}, fetch.Credentials{})
		if err != nil {
			t.Fatal(err)
		}
		if files.Digest != "git:"+want || f.packs.Load() != packs {
			t.Errorf("%s is %s after %d packs: want %s after %d", ref, files.Digest, f.packs.Load(), want, packs)
		}
	}
	get("refs/heads/main", one, 1)
	get("refs/heads/main", one, 1)
	two := f.commit(map[string]string{"a.yaml": "2"})
	get("refs/heads/main", two, 2)
	get(one, one, 3)
	get(one, one, 3)
	f.git("-C", f.folder, "tag", "-m", "with words", "v1.0.0")
	get("refs/tags/v1.0.0", two, 4)
	get("refs/tags/v1.0.0", two, 4)
}

func TestAChartIsAFolderOfACommit(t *testing.T) {
	f := newForge(t)
	commit := f.commit(map[string]string{
		"charts/app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "charts/app/templates/page.yaml": "kind: ConfigMap\n",
		"charts/other/Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n", "README.md": "hello",
	})
	from := v1alpha1.HelmChart{Repository: f.url, Ref: "refs/heads/main", Chart: "charts/app", Version: "1.0.0"}
	chart, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), from, fetch.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	if chart.Name() != "app" || chart.Digest != "git:"+commit || len(chart.Templates) != 1 {
		t.Errorf("got %s of %s with %d templates", chart.Name(), chart.Digest, len(chart.Templates))
	}
	for folder, want := range map[string]string{"charts/none": `has no folder "charts/none"`, "charts/other/../../..": "has no folder"} {
		from.Chart = folder
		_, err := newFetcher(t, fetch.Config{}).Chart(t.Context(), from, fetch.Credentials{})
		if !errors.Is(err, fetch.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

func TestARepositoryGetsTheLoginOfItsSecret(t *testing.T) {
	f := newForge(t)
	f.commit(map[string]string{"a.yaml": "1"})
	from := v1alpha1.Artifact{URL: strings.Replace(f.url, "/app.git", "/private/app.git", 1), Ref: "refs/heads/main"}
	with := func(password string) fetch.Credentials {
		c, err := fetch.CredentialsFromSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"},
			Data: map[string][]byte{"username": []byte("ann"), "password": []byte(password)}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := newFetcher(t, fetch.Config{}).Files(t.Context(), from, with("secret-1")); err != nil {
		t.Error(err)
	}
	for _, c := range []fetch.Credentials{{}, with("wrong-pw")} {
		_, err := newFetcher(t, fetch.Config{}).Files(t.Context(), from, c)
		if !errors.Is(err, fetch.ErrUnauthorized) || strings.Contains(err.Error(), "wrong-pw") {
			t.Errorf("with %v: %v", c, err)
		}
	}
}

func TestWhatIsWrongWithARepositoryIsSaid(t *testing.T) {
	f := newForge(t)
	f.commit(map[string]string{"a.yaml": strings.Repeat("a", 200<<10), "many/1": "1", "many/2": "2", "many/3": "3", "many/4": "4"})
	main := v1alpha1.Artifact{URL: f.url, Ref: "refs/heads/main"}
	f.git("-C", f.folder, "tag", "-m", "with words", "v1.0.0")
	tag := f.git("-C", f.folder, "rev-parse", "v1.0.0")
	nobody := httptest.NewServer(nil)
	nobody.Close()
	for name, row := range map[string]struct {
		from   v1alpha1.Artifact
		limits fetch.Limits
		class  error
		says   string
	}{
		"no branch":        {v1alpha1.Artifact{URL: f.url, Ref: "refs/heads/none"}, fetch.Limits{}, fetch.ErrNotFound, "has no refs/heads/none"},
		"no commit":        {v1alpha1.Artifact{URL: f.url, Ref: strings.Repeat("1", 40)}, fetch.Limits{}, fetch.ErrNotFound, "does not give that commit"},
		"digits of a tag":  {v1alpha1.Artifact{URL: f.url, Ref: tag}, fetch.Limits{}, fetch.ErrDigest, "git:" + tag},
		"no repository":    {v1alpha1.Artifact{URL: f.url + "/none", Ref: "refs/heads/main"}, fetch.Limits{}, fetch.ErrNotFound, "no repository"},
		"nobody":           {v1alpha1.Artifact{URL: "git+" + nobody.URL, Ref: "refs/heads/main"}, fetch.Limits{}, fetch.ErrUnavailable, "refused"},
		"too many files":   {main, fetch.Limits{Files: 3}, fetch.ErrTooLarge, "more than 3 files and folders"},
		"too many objects": {main, fetch.Limits{Files: 2}, fetch.ErrTooLarge, "more than 6 objects"},
		"a bomb":           {main, fetch.Limits{Unpacked: 100 << 10, File: 1 << 20}, fetch.ErrTooLarge, "its commit has more than 102400 bytes unpacked"},
		"too large":        {main, fetch.Limits{Download: 64, Index: 64}, fetch.ErrTooLarge, "as it is sent"},
		"a file too much":  {main, fetch.Limits{File: 100 << 10}, fetch.ErrTooLarge, "a.yaml has 204800 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFetcher(t, fetch.Config{Limits: row.limits}).Files(t.Context(), row.from, fetch.Credentials{})
			if err == nil || row.class != nil && !errors.Is(err, row.class) || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want %v: %s", err, row.class, row.says)
			}
		})
	}

	plain, err := fetch.New(fetch.Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Files(t.Context(), main, fetch.Credentials{}); !fetch.Permanent(err) || !strings.Contains(err.Error(), "not wired into this operator") {
		t.Errorf("without Git: %v", err)
	}
}

func TestWhatAServerSaysIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
		switch {
		case strings.HasPrefix(r.URL.Path, "/refs/"):
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+line(strings.Repeat("1", 40)+" refs/heads/first\x00ofs-delta\n"))
			for i := range 40_000 {
				_, _ = io.WriteString(w, line(fmt.Sprintf("%040d refs/heads/%d-%s\n", i, i, strings.Repeat("b", 2000))))
			}
			_, _ = io.WriteString(w, "0000")
		default:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("sorry ", 15_000_000))
		}
	}))
	t.Cleanup(server.Close)
	for _, path := range []string{"/refs/app.git", "/error/app.git"} {
		from := v1alpha1.Artifact{URL: "git+" + server.URL + path, Ref: "refs/heads/main"}
		_, err := newFetcher(t, fetch.Config{Limits: fetch.Limits{Download: 1 << 10}}).Files(t.Context(), from, fetch.Credentials{})
		if !errors.Is(err, fetch.ErrTooLarge) || !strings.Contains(err.Error(), "Limits.Download") {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
}
