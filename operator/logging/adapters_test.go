package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/internal/liblog"
	"github.com/operatorkit/operatorkit/operator/logging"
)

func secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "password"},
		Data:       map[string][]byte{"p": []byte("hunter2")},
	}
}

func TestSlogEndsInTheStream(t *testing.T) {
	tests := []struct {
		name string
		log  func(*slog.Logger)
		want string
	}{
		{"info", func(l *slog.Logger) { l.Info("m", "k", 1, "d", time.Second) }, "TIME INFO    m k=1 d=1s\n"},
		{"debug", func(l *slog.Logger) { l.Debug("m") }, "TIME DEBUG   m\n"},
		{"warning", func(l *slog.Logger) { l.Warn("m") }, "TIME WARNING m\n"},
		{"error", func(l *slog.Logger) { l.Error("m", "error", errors.New("broken pipe")) }, "TIME ERROR   m error=\"broken pipe\"\n"},
		{"between two levels", func(l *slog.Logger) { l.Log(context.Background(), slog.LevelInfo+1, "m") }, "TIME INFO    m\n"},
		{"groups", func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).Info("m", "c", 3, slog.Group("h", "d", 4))
		}, "TIME INFO    m g.c=3 g.h.d=4 a=1 g.b=2\n"},
		{"an inlined group", func(l *slog.Logger) { l.Info("m", slog.Group("", "a", 1)) }, "TIME INFO    m a=1\n"},
		{"keys of the stream stay its own", func(l *slog.Logger) { l.Info("m", "level", "x", "message", "y") },
			"TIME INFO    m attr.level=x attr.message=y\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.log(logging.Slog(newLogger(t, &out, logging.FormatText, logging.LevelDebug)))
			if diff := cmp.Diff(tt.want, textLines(out.String())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMessageWhoseLevelIsLoweredIsWrittenOnlyFromThatLevelOn(t *testing.T) {
	for level, want := range map[logging.Level]string{logging.LevelWarning: "", logging.LevelDebug: "DEBUG"} {
		var b bytes.Buffer
		logger, err := logging.New(logging.Config{Writer: &b, Format: logging.FormatText, Level: level})
		if err != nil {
			t.Fatal(err)
		}
		slog.New(liblog.Handler(logger, func(r *slog.Record, write func()) {
			r.Level = slog.LevelDebug
			write()
		})).Error("the watch has ended")
		if got := b.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("at the level %s: wrote %q, want %q in it", level, got, want)
		}
	}
}

func TestSlogTellsWhatIsEnabled(t *testing.T) {
	l := logging.Slog(newLogger(t, &bytes.Buffer{}, logging.FormatText, logging.LevelWarning))
	got := map[slog.Level]bool{}
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		got[level] = l.Enabled(context.Background(), level)
	}
	want := map[slog.Level]bool{slog.LevelDebug: false, slog.LevelInfo: false, slog.LevelWarn: true, slog.LevelError: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLogrEndsInTheStream(t *testing.T) {
	var out bytes.Buffer
	l := logging.Logr(newLogger(t, &out, logging.FormatText, logging.LevelDebug))
	l.WithName("a").WithName("b").WithValues("k", "v").Info("named", "n", 1)
	l.V(1).Info("verbose")
	l.V(4).Info("more verbose")
	l.V(5).Info("too verbose")
	l.Error(errors.New("broken"), "failed", "level", 7)
	l.Error(nil, "failed without an error")
	l.Info("object", "ref", klog.KRef("default", "home"))

	want := `TIME INFO    named logger=a/b n=1 k=v
TIME DEBUG   verbose
TIME DEBUG   more verbose
TIME ERROR   failed error=broken attr.level=7
TIME ERROR   failed without an error
TIME INFO    object ref=default/home
`
	if diff := cmp.Diff(want, textLines(out.String())); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesEndInALogr(t *testing.T) {
	var out bytes.Buffer
	l := logging.FromLogr(logging.Logr(newLogger(t, &out, logging.FormatText, logging.LevelDebug)).WithName("manager"))
	l.With("source", "homes").Error(t.Context(), errors.New("broken"), "failed")
	l.Log("level", "warning", "message", "warned", "n", 1)
	l.Debugf(t.Context(), "step %d", 2)
	l.LogCtx(t.Context(), "level", "error", "message", "panicked", "stack", "line")

	want := `TIME ERROR   failed logger=manager error=broken source=homes
TIME INFO    warned logger=manager n=1
TIME DEBUG   step 2 logger=manager
TIME ERROR   panicked logger=manager attr.stack=line
`
	if diff := cmp.Diff(want, textLines(out.String())); diff != "" {
		t.Error(diff)
	}
}

func TestLogrAsksTheLevel(t *testing.T) {
	l := logging.Logr(newLogger(t, &bytes.Buffer{}, logging.FormatText, logging.LevelInfo))
	if !l.Enabled() || l.V(1).Enabled() {
		t.Errorf("at info: V(0) %t, V(1) %t; want true, false", l.Enabled(), l.V(1).Enabled())
	}
}

func TestR14AdaptersNeverWriteAnObject(t *testing.T) {
	s := secret()
	values := map[string]any{
		"object": s, "list": &corev1.SecretList{Items: []corev1.Secret{*s}}, "value": *s, "data": s.Data,
		"bytes": s.Data["p"], "slice": []corev1.Secret{*s}, "part": &corev1.EnvVar{Name: "P", Value: "hunter2"},
	}
	for name, v := range values {
		for _, format := range []logging.Format{logging.FormatJSON, logging.FormatText} {
			t.Run(name+"/"+string(format), func(t *testing.T) {
				var out bytes.Buffer
				logger := newLogger(t, &out, format, logging.LevelDebug)
				logging.Logr(logger).WithValues("v", v).Error(nil, "m", "v", v)
				logging.Slog(logger).With("v", v).Error("m", "v", v)
				if strings.Count(out.String(), "\n") != 2 {
					t.Errorf("want two lines, got %q", out.String())
				}
				// The base64 of the value, which JSON would show.
				if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), "aHVudGVyMg") {
					t.Errorf("the Secret is in the log: %s", out.String())
				}
			})
		}
	}
}

func TestAdaptersNameObjects(t *testing.T) {
	var out bytes.Buffer
	logging.Logr(newLogger(t, &out, logging.FormatText, logging.LevelInfo)).
		Info("m", "secret", secret(), "node", &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			"none", (*corev1.Secret)(nil))
	want := "TIME INFO    m secret=\"*v1.Secret default/password\" node=\"Node n1\" none=*v1.Secret\n"
	if diff := cmp.Diff(want, textLines(out.String())); diff != "" {
		t.Error(diff)
	}
}

func TestCallerIsWhoCallsTheAdapter(t *testing.T) {
	var out bytes.Buffer
	logger := newLogger(t, &out, logging.FormatJSON, logging.LevelDebug)
	logger.Log("message", "direct")
	logger.Errorf(context.Background(), errors.New("broken"), "formatted")
	logger.With("k", "v").Debug(context.Background(), "with")
	logging.Slog(logger).Info("slog")
	logging.Logr(logger).WithName("x").Info("logr")
	for _, m := range messages(t, out.String()) {
		if caller := m["caller"].(string); !strings.HasPrefix(caller, "github.com/operatorkit/operatorkit/operator/logging_test/adapters_test.go:") {
			t.Errorf("%s: caller is %s", m["message"], caller)
		}
	}
}

func TestIncreasedCallerDepthTellsTheCallerOfTheWrapper(t *testing.T) {
	var out bytes.Buffer
	logger := newLogger(t, &out, logging.FormatJSON, logging.LevelDebug)
	wrapper := func(l micrologger.Logger) {
		l.WithIncreasedCallerDepth().With("k", "v").Log("message", "wrapped")
	}
	_, _, here, _ := runtime.Caller(0)
	wrapper(logger)
	want := fmt.Sprintf("adapters_test.go:%d", here+1)
	if caller := messages(t, out.String())[0]["caller"].(string); !strings.HasSuffix(caller, want) {
		t.Errorf("caller is %s, want %s", caller, want)
	}
}

// TestCaptureLeadsTheLibrariesHere runs itself in a process of its own, because Capture sets what is global.
func TestCaptureLeadsTheLibrariesHere(t *testing.T) {
	if os.Getenv("CAPTURE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCaptureLeadsTheLibrariesHere$")
		cmd.Env = append(os.Environ(), "CAPTURE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	var out, standard bytes.Buffer
	log.SetOutput(&standard)
	log.SetFlags(0)
	logging.Capture(newLogger(t, &out, logging.FormatText, logging.LevelInfo))

	klog.InfoS("from klog", "pod", klog.KRef("ns", "p"))
	klog.Background().V(1).Info("hidden")
	klog.Errorf("old %s", "klog")
	ctrllog.Log.WithName("ctrl").Info("from controller-runtime")
	slog.Info("from slog")
	log.Print("the standard library")

	want := `TIME INFO    from klog pod=ns/p
TIME ERROR   old klog
TIME INFO    from controller-runtime logger=ctrl
TIME INFO    from slog
`
	if diff := cmp.Diff(want, textLines(out.String())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("the standard library\n", standard.String()); diff != "" {
		t.Error(diff)
	}
}
